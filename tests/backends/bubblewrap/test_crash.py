"""The host is killed at any instant: nothing inside may live on."""

from __future__ import annotations

import os
import random
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROUNDS = int(os.environ.get("FIRSTHAND_KILL_ROUNDS", "25"))

DRIVER = """
import sys
from pathlib import Path
from firsthand.isolation.interface import Limits, Request, Workspace
from firsthand_bubblewrap.backend import BubblewrapBackend
class Watch:
    def started(self, pid): pass
    def ended(self, pid): pass
copy, private, mark = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
workspace = Workspace(copy=copy, shown_at=Path("/srv/firsthand-test/project"), private=private, token=mark)
script = "(setsid setsid sleep %s >/dev/null 2>&1 </dev/null &); sleep %s & trap '' TERM; while :; do sleep %s; done"
argv = ("/usr/bin/sh", "-c", script.replace("%s", mark))
with BubblewrapBackend().enclose(workspace, Limits(), Watch()) as enclosure:
    sys.stdout.write("go\\n")
    sys.stdout.flush()
    while True:
        enclosure.run(Request(argv=argv, executable=argv[0], timeout_s=0.05))
"""


def living(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in words:
                found.append(int(entry.name))
    return found


def describe(pids: list[int]) -> str:
    parts = []
    for pid in pids:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")[:300]
            status = Path(f"/proc/{pid}/status").read_text().split("\nTgid")[0].replace("\n", " ")
            parts.append(f"{pid} ({status}; {Path(f'/proc/{pid}/wchan').read_text()}): {words!r}")
        except OSError:
            continue
    return "; ".join(parts)


@pytest.mark.slow
def test_sigkill_of_the_host_at_random_instants_leaves_no_process(backend: Any, tmp_path: Path) -> None:
    chance = random.Random(20261130)
    lived_ms = []
    for number in range(ROUNDS):
        copy, private = tmp_path / f"c{number}", tmp_path / f"p{number}"
        copy.mkdir()
        private.mkdir()
        mark = str(10**8 + secrets.randbelow(10**8))
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(copy), str(private), mark],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"go\n"
        time.sleep(chance.uniform(0, 0.12))  # the random instant is the subject of this test
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        driver.stdout.close()
        start = time.monotonic()
        while left := living(mark):
            assert time.monotonic() - start < 2, f"round {number}: {describe(left)} outlived the host"
        lived_ms.append((time.monotonic() - start) * 1000)
    assert len(lived_ms) == ROUNDS


def test_the_attack_works_without_the_sandbox(tmp_path: Path) -> None:
    """The control: the same daemon, started plainly, does outlive the one that started it."""
    mark = str(10**8 + secrets.randbelow(10**8))
    script = f"setsid setsid sleep {mark} >/dev/null 2>&1 </dev/null & exec sleep 60"
    parent = subprocess.Popen(["/bin/sh", "-c", script], start_new_session=True)
    start = time.monotonic()
    while not living(mark) and time.monotonic() - start < 5:
        pass
    parent.kill()
    parent.wait()
    survivors = [pid for pid in living(mark) if pid != parent.pid]
    assert survivors
    for pid in survivors:
        os.kill(pid, signal.SIGKILL)
