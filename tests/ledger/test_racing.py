"""Two hosts race for the same rounds: each is claimed exactly once, nobody ever fails with a lock."""

from __future__ import annotations

import os
from pathlib import Path

from firsthand.ledger import Ledger
from firsthand.residues import StateDirectory
from ledger.desk import python

ROUNDS = int(os.environ.get("FIRSTHAND_RACE_ROUNDS", "60"))
TESTS = str(Path(__file__).parents[1])

RACER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from firsthand.ledger import ClaimRefusedError, Ledger
from firsthand.residues import StateDirectory
from ledger.desk import asked
with Ledger.open(StateDirectory.open(Path(sys.argv[1]))) as ledger:
    print(flush=True)
    sys.stdin.readline()
    for number in range(int(sys.argv[3])):
        try:
            claim = ledger.claim(asked(run_id=f"run-{number}", max_rounds=1))
            print(number, claim.nonce, claim.fence)
        except ClaimRefusedError as error:
            assert error.code == "round_taken", error
print("done", flush=True)
sys.stdin.readline()
"""


def test_two_processes_race_for_every_round(state: StateDirectory) -> None:
    racers = [python(RACER, str(state.path), TESTS, str(ROUNDS)) for _ in range(2)]
    for racer in racers:
        assert racer.stdout is not None
        racer.stdout.readline()
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    won: list[list[str]] = []
    for racer in racers:
        assert racer.stdout is not None
        mine = iter(racer.stdout.readline, "done\n")
        won.append([line.strip() for line in mine])
    # Both still live here, so no claim of theirs was ever without a holder.
    with Ledger.open(state) as ledger:
        claimed = [one for run in ledger.runs() for one in ledger.rounds(run.run_id)]
    for racer in racers:
        racer.communicate("\n", timeout=60)
        assert racer.returncode == 0
    assert len(won[0]) + len(won[1]) == ROUNDS
    assert {line.split()[0] for lines in won for line in lines} == {str(number) for number in range(ROUNDS)}
    told = {line.split()[1] for lines in won for line in lines}
    assert told == {one.facts.nonce for one in claimed}
    assert len(told) == len({one.fence for one in claimed}) == ROUNDS
