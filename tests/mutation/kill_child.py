"""A series that is killed from outside while its mutation stands: says when, and which processes then run.

python kill_child.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from checks.yard import Yard
from firsthand.mutation import run_series
from firsthand.records import Mutation

VALUE = "X=1\n"
CHECK = '. ./value.sh\ntest "$X" = 1 || { touch begun; exec sleep 60; }\n'


def main() -> None:
    yard = Yard(
        Path(sys.argv[1]),
        {"value.sh": VALUE, "check.sh": CHECK},
        ("/usr/bin/sh", "check.sh"),
        mutation_paths=("value.sh",),
        runner="exit",
    )
    said = False
    with yard.lane() as lane:

        def mutated() -> bool:
            nonlocal said
            if not said and (lane.copy_path / "begun").exists():
                said = True
                sys.stdout.write(" ".join(map(str, yard.processes.alive)) + "\n")
                sys.stdout.flush()
            return False

        run_series(
            [Mutation(check="c", path="value.sh", old="X=1", new="X=9")],
            yard.registered,
            [lane],
            controls=yard.controls,
            recorder=yard.recorder,
            cancelled=mutated,
        )


if __name__ == "__main__":
    main()
