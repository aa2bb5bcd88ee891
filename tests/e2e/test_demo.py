"""The demonstration: every attempt works without the sandbox and is stopped inside, and the story comes out right."""

from __future__ import annotations

import os
from pathlib import Path

from e2e.program import Program
from firsthand.engine.demo.targets import ATTEMPTS
from firsthand.evidence.storing import read_sealed
from firsthand.evidence.verifying import verify


def test_every_attempt_is_stopped_and_the_story_comes_out_right(program: Program, tmp_path: Path) -> None:
    kept, temporary = tmp_path / "kept", tmp_path / "tmp"
    temporary.mkdir()
    answer = program("demo", "--keep", kept, cwd=tmp_path, TMPDIR=str(temporary))
    assert answer.status == 0, answer.out
    assert "as it should be" in answer.out
    lines = answer.out.splitlines()
    for _, what in ATTEMPTS:
        (line,) = [line for line in lines if line.startswith(what)]
        assert line.removeprefix(what).split()[:2] == ["works", "stopped"], line
    assert "NOT STOPPED" not in answer.out
    assert "detected" in answer.out
    assert "survived" in answer.out
    for name in ("check.json", "hostile.json", "mutations.json"):
        assert verify(read_sealed(kept / name)).valid
    assert not verify(read_sealed(kept / "tampered.json")).valid
    assert os.listdir(temporary) == []
    assert os.listdir(kept / "state" / "sessions") == []
    assert not [pid for pid in os.listdir("/proc") if pid.isdecimal() and _argv(pid)[:1] == [b"sleep"] and _ours(pid)]


def _argv(pid: str) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _ours(pid: str) -> bool:
    """Whether a sleep is one of the demonstration's: they last a number of seconds of six digits."""
    words = _argv(pid)
    return len(words) > 1 and len(words[1]) == 6 and words[1].isdigit()


def test_a_folder_that_exists_is_not_worked_in(program: Program, tmp_path: Path) -> None:
    answer = program("demo", "--keep", tmp_path, cwd=tmp_path)
    assert answer.status == 2
    assert "--keep" in answer.err
