"""SIGKILL of the program at random instants of its whole life.

The source is untouched, no process lives on, no copy stays, evidence is whole or not there. The number of rounds is
FIRSTHAND_KILL_ROUNDS.
"""

from __future__ import annotations

import logging
import os
import random
import secrets
import select
import shutil
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from e2e.program import Program, carrying
from e2e.project import PYTHON, Project
from firsthand.evidence.storing import read_sealed
from firsthand.evidence.verifying import verify

ROUNDS = int(os.environ.get("FIRSTHAND_KILL_ROUNDS", "8"))
GONE_WITHIN_S = 2.0

VALUE = "def value():\n    return 1\n"
TESTS = """\
import subprocess
import unittest
from value import value

class Value(unittest.TestCase):
    def test_value(self):
        quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        script = "trap '' TERM INT HUP; mkdir -p d/e; chmod 0 d/e; chmod 0 d; sleep MARK"
        subprocess.Popen(["sh", "-c", script], **quiet)
        subprocess.Popen(["setsid", "sleep", "MARK"], start_new_session=True, **quiet)
        subprocess.run(["sleep", "0.1"], check=True)
        self.assertEqual(value(), 1)
"""


@dataclass(frozen=True)
class Kin:
    """A process below the program, told apart from a later one of its number by its start time."""

    pid: int
    start: int

    def lives(self) -> bool:
        found = _stat(self.pid)
        return found is not None and (found[1], found[2] not in "ZX") == (self.start, True)


def _stat(pid: int) -> tuple[int, int, str] | None:
    """Parent, start time and state."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[1]), int(fields[19]), fields[0]


def kin_of(ancestor: int) -> list[Kin]:
    """All descendants of a process, whatever sessions and groups they made for themselves."""
    stats = {int(name): _stat(int(name)) for name in os.listdir("/proc") if name.isdecimal()}
    found: list[Kin] = []
    pending = [ancestor]
    while pending:
        above = pending.pop()
        for pid, status in stats.items():
            if status is not None and status[0] == above:
                found.append(Kin(pid, status[1]))
                pending.append(pid)
    return found


@pytest.fixture
def ground(tmp_path: Path) -> tuple[Program, Project, str]:
    """The program with a home and temporary folder of its own, a project, and what its processes are known by."""
    mark = str(10**9 + secrets.randbelow(10**9))
    for name in ("home", "tmp", "project"):
        (tmp_path / name).mkdir()
    project = Project(tmp_path / "project")
    project.write("value.py", VALUE)
    project.write("test_value.py", TESTS.replace("MARK", mark))
    project.define(
        ("value", [PYTHON, "-m", "unittest", "test_value"]),
        files=["value.py", "test_value.py"],
        mutationPaths=["value.py"],
    )
    environment = {**os.environ, "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp"), "MARK": mark}
    return Program(tmp_path / "state", environment=environment), project, mark


COMMANDS = {
    "check": ("check",),
    "mutate": ("mutate", "--check", "value", "--path", "value.py", "--old", "return 1", "--new", "return 2"),
    "cold": ("check",),
}


@pytest.mark.slow
def test_sigkill_at_any_instant_leaves_nothing_and_harms_nothing(
    ground: tuple[Program, Project, str], tmp_path: Path, tree: Any, record_testsuite_property: Any
) -> None:
    program, project, mark = ground
    source = tree(project.root)
    lives: dict[str, float] = {}
    for name in ("cold", "check", "mutate"):
        begun = time.monotonic()
        answer = program(*COMMANDS[name], "--json", cwd=project.root)
        assert answer.status == 0, answer
        lives[name] = time.monotonic() - begun
    chance = random.Random(20261130)
    met: Counter[str] = Counter()
    slowest_s = 0.0
    for number in range(ROUNDS):
        name = ("check", "mutate", "check", "cold")[number % 4]
        if name == "cold":
            shutil.rmtree(program.state / "cache" / "battery", ignore_errors=True)
        running = program.start(*COMMANDS[name], "--json", cwd=project.root)
        assert running.stdout is not None
        assert running.stderr is not None
        # The instant: a timer; its answer, should it come before, does not shorten it.
        select.select([], [], [], chance.uniform(0, lives[name] * 1.05))
        kin = kin_of(running.pid)
        met["ended before" if running.poll() is not None else "killed"] += 1
        met["with processes"] += bool(kin)
        running.send_signal(signal.SIGKILL)
        running.wait()
        begun = time.monotonic()
        while left := [*filter(Kin.lives, kin), *carrying(mark)]:
            assert time.monotonic() - begun < GONE_WITHIN_S, f"round {number} ({name}): {_told(left)}"
        slowest_s = max(slowest_s, time.monotonic() - begun)
        for stream in (running.stdout, running.stderr):
            stream.close()
        assert tree(project.root) == source, f"round {number} ({name})"
        met["with a session left"] += bool(program.sessions())
        _cleaned(program, project, number)
        assert list((tmp_path / "tmp").iterdir()) == [], f"round {number} ({name})"
        traces = [path for place in (tmp_path / "home", Path("/tmp"), Path("/dev/shm")) for path in place.iterdir()]
        assert not [path for path in traces if path.name.startswith(f".firsthand-battery-{running.pid}-")], number
        for evidence in (program.state / "evidence").iterdir():
            found = verify(read_sealed(evidence), root=project.root)
            assert (found.valid, found.stale) == (True, False), f"round {number} ({name}): {evidence}, {found.problems}"
            evidence.unlink()
            met["with evidence"] += 1
        if name != "cold" and not (program.state / "cache" / "battery").exists():
            assert program("check", cwd=project.root).status == 0
    told = f"{dict(met)}; the last process gone after at most {slowest_s * 1000:.0f} ms"
    record_testsuite_property("kill rounds", told)
    logging.getLogger(__name__).info("%d rounds: %s; lives %s", ROUNDS, told, lives)
    # The rounds were worth something.
    if ROUNDS >= 8:
        assert met["killed"] >= ROUNDS // 2
        assert met["with processes"]
        assert met["with a session left"]


def _cleaned(program: Program, project: Project, number: int) -> None:
    """Every other time by the command for it, else by the next start of anything that runs checks."""
    if number % 2:
        answer = program("residues", "--clean", "--json", cwd=project.root)
        assert answer.status == 0, answer
        assert {residue["state"] for residue in answer.json["residues"]} <= {"removed", "ended"}, answer.out
    else:
        answer = program("check", "--json", cwd=project.root)
        assert answer.status == 0, answer
        assert program("residues", "--clean", "--json", cwd=project.root).json == {"residues": []}
    assert program.sessions() == [], answer


def _told(left: list[Any]) -> str:
    pids = [one.pid if isinstance(one, Kin) else one for one in left]
    arguments = {pid: Path(f"/proc/{pid}/cmdline") for pid in pids}
    return "; ".join(f"{pid} {_stat(pid)} {file.read_bytes()!r}" for pid, file in arguments.items() if file.exists())
