from __future__ import annotations

import pytest

from firsthand.ledger import Ledger, RunBindingError
from firsthand.residues import StateDirectory
from ledger.desk import python

ONE, TWO = "1" * 64, "2" * 64


def test_the_first_definition_binds(ledger: Ledger) -> None:
    ledger.bind("fix-1", ONE)
    ledger.bind("fix-1", ONE)
    ledger.bind("fix-2", TWO)
    with pytest.raises(RunBindingError) as caught:
        ledger.bind("fix-1", TWO)
    assert caught.value.code == "review_verification_definition_changed"
    assert caught.value.exit_status == 2
    assert "fix-1" in caught.value.message
    ledger.bind("fix-1", ONE)
    assert [(run.run_id, run.fingerprint) for run in ledger.runs()] == [("fix-1", ONE), ("fix-2", TWO)]


@pytest.mark.parametrize("run_id", ["../../escape", "a/b", "\x00", "é" * 500, "", "CON", "fix-1 ", "'; DROP TABLE run"])
def test_any_id_is_a_safe_name(ledger: Ledger, run_id: str) -> None:
    ledger.bind(run_id, ONE)
    with pytest.raises(RunBindingError):
        ledger.bind(run_id, TWO)
    assert [run.run_id for run in ledger.runs()] == [run_id]


BINDER = """
import sys
from pathlib import Path
from firsthand.ledger import Ledger, RunBindingError
from firsthand.residues import StateDirectory
state = StateDirectory.open(Path(sys.argv[1]))
won = 0
print(flush=True)
sys.stdin.readline()
with Ledger.open(state) as ledger:
    for number in range(25):
        try:
            ledger.bind(f"run-{number}", sys.argv[2] * 64)
            won += 1
        except RunBindingError:
            pass
print(won)
"""


def test_of_many_at_once_that_also_make_the_ledger_exactly_one_wins(state: StateDirectory) -> None:
    binders = [python(BINDER, str(state.path), digit) for digit in "1234"]
    for binder in binders:
        assert binder.stdout is not None
        binder.stdout.readline()
        assert binder.stdin is not None
    for binder in binders:
        assert binder.stdin is not None
        binder.stdin.write("\n")
        binder.stdin.flush()
    outputs = [binder.communicate(timeout=120)[0] for binder in binders]
    assert sum(int(output) for output in outputs) == 25
    with Ledger.open(state) as ledger:
        assert len(ledger.runs()) == 25
