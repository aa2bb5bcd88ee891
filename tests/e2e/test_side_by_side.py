"""Several at once, on one state directory: none disturbs another."""

from __future__ import annotations

import json
import os
import secrets
import time
from pathlib import Path

from e2e.program import Program, carrying
from e2e.project import Project, cart
from firsthand.evidence.storing import read_sealed
from firsthand.evidence.verifying import verify


def test_checks_at_once_on_one_state_directory(program: Program, tmp_path: Path) -> None:
    project = cart(tmp_path / "project")
    running = [program.start("check", "--json", cwd=project.root) for _ in range(4)]
    evidence = set()
    for one in running:
        out, err = one.communicate(timeout=120)
        assert one.returncode == 0, err
        evidence.add(json.loads(out)["evidence"])
    assert len(evidence) == 4
    assert all(verify(read_sealed(Path(path)), root=project.root).valid for path in evidence)
    assert program.sessions() == []


def test_cleaning_does_not_touch_what_is_at_work(program: Program, project: Project) -> None:
    number = f"2.0{10**9 + secrets.randbelow(10**9)}"
    project.shell(("sleeps", f"sleep {number}"))
    with program.start("check", "--json", cwd=project.root) as running:
        begun = time.monotonic()
        while not [pid for pid in carrying(number) if _name(pid) == "sleep\n"]:
            assert running.poll() is None
            assert time.monotonic() - begun < 60
        cleaned = program("residues", "--clean", "--json", cwd=project.root)
        assert cleaned.json == {"residues": []}
        assert len(program.sessions()) == 1
        out, err = running.communicate(timeout=60)
    assert running.returncode == 0, err
    assert json.loads(out)["status"] == "passed"
    assert program.sessions() == []
    assert os.listdir(program.state / "evidence") == [Path(json.loads(out)["evidence"]).name]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""
