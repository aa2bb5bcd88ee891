"""SIGKILL at random instants: the source is untouched, and the next sweep leaves nothing."""

from __future__ import annotations

import hashlib
import os
import random
import secrets
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firsthand.residues import StateDirectory, list_residues, sweep

ROUNDS = int(os.environ.get("FIRSTHAND_KILL_ROUNDS", "40"))

# Begins and ends sessions for ever: trees that resist, credentials, processes entered, not yet entered, and in sessions
# of their own; now and then a sweep of its own, so that sweeps are killed too. The source is only ever read.
TARGET = """
import os, subprocess, sys
from pathlib import Path
from firsthand.residues import Session, StateDirectory, sweep

state = StateDirectory.open(Path(sys.argv[1]))
source = Path(sys.argv[2])
print(flush=True)
while True:
    with Session.open(state) as session:
        copy = session.tree("copy")
        for name in os.listdir(source):
            (copy / name).write_bytes((source / name).read_bytes())
        (copy / "locked").mkdir()
        (copy / "locked" / "file").write_text("x")
        (copy / "locked").chmod(0)
        home = session.tree("home")
        session.credential(home / "credential").write_text("secret")
        processes = []
        # The first has no children, so that its end is the end of all; the second has a family without the token.
        for script in ("kill -STOP $$", "sleep 600 & sleep 600 & wait"):
            process = subprocess.Popen(["/bin/sh", "-c", script, f"firsthand-{session.token}"], start_new_session=True)
            session.started(process.pid)
            processes.append(process)
        processes[0].kill()
        processes[0].wait()
        session.ended(processes[0].pid)
        session.remove(home)
        sweep(state, clean_kept=False)
    for process in processes:
        process.wait()
"""


def marked(mark: str) -> list[int]:
    """Processes that inherited this from the target, whatever became of their arguments."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            try:
                environment = Path(f"/proc/{name}/environ").read_bytes()
            except OSError:
                continue
            if mark.encode() in environment:
                found.append(int(name))
    return found


def gone_in_time(mark: str) -> list[int]:
    """Who still carries the mark after the 2 s that the contract gives; a killed process takes a moment to go."""
    deadline = time.monotonic() + 2
    while (found := marked(mark)) and time.monotonic() < deadline:
        select.select([], [], [], 0.01)
    return found


def digest(folder: Path) -> str:
    state = [(path.name, path.read_bytes(), path.stat().st_mode) for path in sorted(folder.iterdir())]
    return hashlib.sha256(repr(state).encode()).hexdigest()


@pytest.mark.skipif(sys.platform != "linux", reason="survivors are found by /proc")
def test_a_kill_at_any_instant_leaves_nothing_behind(state: StateDirectory, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(5):
        (source / f"file-{number}").write_bytes(os.urandom(1000))
    before = digest(source)
    left: dict[str, int] = {}
    mark = secrets.token_hex(16)
    for round_number in range(ROUNDS):
        target = subprocess.Popen(
            [sys.executable, "-c", TARGET, str(state.path), str(source)],
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "MARK": mark},
        )
        assert target.stdout is not None
        target.stdout.readline()
        # The instant: select as a timer with the resolution of the clock; nothing is ever written.
        select.select([target.stdout], [], [], random.Random(round_number).uniform(0, 0.04))
        target.kill()
        target.wait()
        target.stdout.close()
        for residue in list_residues(state):
            left[residue.kind] = left.get(residue.kind, 0) + 1
        swept = sweep(state, clean_kept=False, timeout_s=10)
        assert not [residue for residue in swept if residue.state not in ("removed", "ended")], swept
        assert os.listdir(state.sessions) == []
        assert gone_in_time(mark) == []
        assert digest(source) == before
    assert list_residues(state) == []
    # The rounds were worth something: kills came while each of these existed.
    if ROUNDS >= 40:
        assert {"tree", "process", "credential"} <= set(left)
