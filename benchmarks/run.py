"""Measure what Firsthand claims about its speed, as ratios within one run: `make bench`.

    .venv/bin/python benchmarks/run.py [--only NAME]... [--rounds N] [--json FILE]

Everything that is compared is measured side by side in this run, turn by turn, so that a busy machine slows both
sides. Nothing here is a test: a figure outside its limit is shown as such and the exit status stays 0.
"""

from __future__ import annotations

import sys
from pathlib import Path

# Started as a script, so that `benchmarks` itself has to be made importable.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.harness.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
