"""Starting and ending a sandbox: whatever fails on the way, nothing of it is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firsthand.isolation.interface import Limits, Request, Workspace

if sys.platform != "linux":
    pytest.skip("bubblewrap needs Linux", allow_module_level=True)

from firsthand_bubblewrap import process
from firsthand_bubblewrap.process import Sandbox, StartError
from firsthand_bubblewrap.watch import children_of, stat_fields


class Watch:
    """Registers nothing; can refuse to."""

    def __init__(self, *, refuse_at: int = 0) -> None:
        self.pids: list[int] = []
        self._refuse_at = refuse_at

    def started(self, pid: int) -> None:
        self.pids.append(pid)
        if len(self.pids) == self._refuse_at:
            raise OSError("the register is full")

    def ended(self, pid: int) -> None:
        self.pids.remove(pid)


def descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def gone(pid: int) -> bool:
    found = stat_fields(pid)
    return found is None or found[1][0] in "ZX"


def launcher(tmp_path: Path, script: str) -> str:
    file = tmp_path / "launcher"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


def start(program: str, tmp_path: Path, watch: Watch) -> Sandbox:
    return Sandbox(program, [], ["x"], b"", tmp_path / "go", owner=None, processes=watch)


@pytest.mark.parametrize("refuse_at", [1, 2])
def test_what_can_not_be_registered_is_ended(make_bench: Callable[..., Any], refuse_at: int) -> None:
    bench = make_bench()
    watch = Watch(refuse_at=refuse_at)
    bench.enclosure._processes = watch
    before = descriptors()
    with pytest.raises(OSError, match="the register is full"):
        bench.shell("sleep 60")
    assert descriptors() == before
    assert children_of(os.getpid()) == [] or all(map(gone, children_of(os.getpid())))
    assert watch.pids == [watch.pids[-1]], "only what was never entered stands without an end"
    assert gone(watch.pids[0])


def test_a_launcher_that_hangs_is_ended_with_its_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_START_S", 0.5)
    noted = tmp_path / "child"
    program = launcher(tmp_path, f"sleep 1000 & echo $! > {noted}; trap '' TERM; while :; do wait; done")
    watch, before = Watch(), descriptors()
    with pytest.raises(StartError, match="not ready") as caught:
        start(program, tmp_path, watch)
    assert caught.value.ended
    assert gone(int(noted.read_text()))
    assert (watch.pids, descriptors()) == ([], before)


def test_a_launcher_that_is_none_leaves_no_descriptor(tmp_path: Path) -> None:
    watch, before = Watch(), descriptors()
    with pytest.raises(StartError, match="can't be started"):
        start(str(tmp_path / "nothing"), tmp_path, watch)
    assert (watch.pids, descriptors()) == ([], before)


SCARCE = """
import json, os, resource, sys
from pathlib import Path
from firsthand.isolation.interface import Limits, Request, Workspace
from firsthand_bubblewrap.backend import BubblewrapBackend
from firsthand_bubblewrap.watch import children_of
class Watch:
    def started(self, pid): pass
    def ended(self, pid): pass
copy, private = Path(sys.argv[1]), Path(sys.argv[2])
workspace = Workspace(copy=copy, shown_at=Path("/srv/firsthand-test/project"), private=private)
argv = ("/usr/bin/sh", "-c", "echo done")
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
told = []
with BubblewrapBackend().enclose(workspace, Limits(), Watch()) as enclosure:
    before = os.listdir("/proc/self/fd")
    for more in range(24):
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(before) + more, hard))
        try:
            kind = enclosure.run(Request(argv=argv, executable=argv[0], timeout_s=10)).outcome.kind
        except OSError:
            kind = "raised"
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        told.append((kind, os.listdir("/proc/self/fd") == before, len(children_of(os.getpid()))))
print(json.dumps(told))
"""


def test_running_out_of_descriptors_leaks_none_and_is_no_success(backend: Any, tmp_path: Path) -> None:
    for name in ("copy", "private"):
        (tmp_path / name).mkdir()
    said = subprocess.run(
        [sys.executable, "-c", SCARCE, str(tmp_path / "copy"), str(tmp_path / "private")],
        capture_output=True,
        check=True,
        timeout=60,
    ).stdout
    told = json.loads(said)
    assert {kind for kind, _, _ in told} >= {"sandbox-failed", "exited"}
    assert [(same, children) for _, same, children in told] == [(True, 0)] * len(told)


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_an_end_that_can_not_be_established_is_said_in_time(backend: Any, tmp_path: Path) -> None:
    for name in ("copy", "private"):
        (tmp_path / name).mkdir()
    workspace = Workspace(
        copy=tmp_path / "copy", shown_at=Path("/srv/firsthand-test/project"), private=tmp_path / "private"
    )
    watch = Watch()
    argv = ("/usr/bin/sh", "-c", "sleep 60")

    def stop_bwrap() -> bool:
        os.kill(watch.pids[0], signal.SIGSTOP)
        return False

    with backend.enclose(workspace, Limits(), watch) as enclosure:
        begun = time.monotonic()
        outcome = enclosure.run(Request(argv=argv, executable=argv[0], timeout_s=0.3, cancelled=stop_bwrap)).outcome
        took = time.monotonic() - begun
    bwrap, init = watch.pids
    os.kill(bwrap, signal.SIGCONT)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(bwrap, 0)
    assert (outcome.kind, outcome.cleanup) == ("timed-out", "unknown")
    assert took < 0.3 + 2
    assert gone(init)
