"""Run the whole corpus, or the part that a word names, through the real sandbox and print what was false.

    python tests/truth/run.py [--rounds N] [--only WORD]

Exits 0 when nothing was said of any suite that is not true of it.
"""

# ruff: noqa: T201 - a command: printing is how it answers
from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from checks.yard import real_backend
from truth.case import Tally
from truth.corpus import CORPUS
from truth.flaky import false_catches


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the corpus of hostile suites.")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="", help="run the suites whose name holds this")
    arguments = parser.parse_args()
    if isinstance(reason := real_backend(), str):
        print(f"no sandbox here: {reason}")
        return 3
    tally = Tally()
    skipped: dict[str, str] = {}
    for round_number in range(1, arguments.rounds + 1):
        begun = time.monotonic()
        for case in CORPUS:
            if arguments.only not in case.name:
                continue
            if case.needs:
                skipped[case.name] = case.needs
                continue
            with tempfile.TemporaryDirectory(prefix="firsthand-truth-") as folder:
                tally.add(case, case.observe(Path(folder) / "yard"))
        if arguments.only in "by chance":
            with tempfile.TemporaryDirectory(prefix="firsthand-truth-") as folder:
                tally.rounds += 1
                tally.false_catches += ["by chance"] * false_catches(Path(folder) / "yard")
        print(f"round {round_number}: {time.monotonic() - begun:.0f} s", flush=True)
    for title, lines in (("other", tally.others), ("catch", tally.false_catches), ("green", tally.false_greens)):
        for line in lines:
            print(f"false {title}: {line}")
    for name, reason in skipped.items():
        print(f"skipped: {name}: {reason}")
    print(
        f"{tally.rounds} trials: {len(tally.false_catches)} false catches, {len(tally.false_greens)} false greens,"
        f" {len(tally.others)} other misjudgements"
    )
    return 1 if tally.false_catches or tally.false_greens or tally.others else 0


if __name__ == "__main__":
    sys.exit(main())
