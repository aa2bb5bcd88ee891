from __future__ import annotations

import subprocess
import sys

import pytest

from firsthand.errors import StateError
from firsthand.residues import RunBindingError, StateDirectory, bind_run

ONE, TWO = "1" * 64, "2" * 64


def test_the_first_definition_binds(state: StateDirectory) -> None:
    bind_run(state, "fix-1", ONE)
    bind_run(state, "fix-1", ONE)
    bind_run(state, "fix-2", TWO)
    with pytest.raises(RunBindingError) as caught:
        bind_run(state, "fix-1", TWO)
    assert caught.value.code == "review_verification_definition_changed"
    assert caught.value.exit_status == 2
    assert "fix-1" in caught.value.message
    bind_run(state, "fix-1", ONE)
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in state.runs.iterdir())


@pytest.mark.parametrize("run_id", ["../../escape", "a/b", "\x00", "é" * 500, "", "CON", "fix-1 "])
def test_any_id_is_a_safe_name(state: StateDirectory, run_id: str) -> None:
    bind_run(state, run_id, ONE)
    with pytest.raises(RunBindingError):
        bind_run(state, run_id, TWO)
    assert len(list(state.runs.iterdir())) == 1


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"fingerprint":"x"}', b'{"fingerprint":"1","runId":"a","b":1}'])
def test_a_damaged_binding_stops_and_is_kept(state: StateDirectory, raw: bytes) -> None:
    bind_run(state, "fix-1", ONE)
    (place,) = state.runs.iterdir()
    place.write_bytes(raw)
    with pytest.raises(StateError, match="can't be read"):
        bind_run(state, "fix-1", ONE)
    assert place.read_bytes() == raw


def test_a_crash_before_the_rename_binds_nothing(state: StateDirectory) -> None:
    bind_run(state, "fix-1", ONE)
    (place,) = state.runs.iterdir()
    place.rename(place.with_suffix(".new"))
    bind_run(state, "fix-1", TWO)
    with pytest.raises(RunBindingError):
        bind_run(state, "fix-1", ONE)
    assert len(list(state.runs.iterdir())) == 1


BINDER = """
import sys
from pathlib import Path
from firsthand.residues import RunBindingError, StateDirectory, bind_run
state = StateDirectory.open(Path(sys.argv[1]))
won = 0
print(flush=True)
sys.stdin.readline()
for number in range(50):
    try:
        bind_run(state, f"run-{number}", sys.argv[2] * 64)
        won += 1
    except RunBindingError:
        pass
print(won)
"""


def test_of_many_at_once_exactly_one_wins(state: StateDirectory) -> None:
    binders = [
        subprocess.Popen(
            [sys.executable, "-c", BINDER, str(state.path), digit],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for digit in "12345678"
    ]
    for binder in binders:
        assert binder.stdout is not None
        binder.stdout.readline()
    outputs = [binder.communicate("\n", timeout=120)[0] for binder in binders]
    assert sum(int(output) for output in outputs) == 50
    assert len(list(state.runs.iterdir())) == 50
