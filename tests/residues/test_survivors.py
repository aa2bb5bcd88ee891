from __future__ import annotations

import dataclasses
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from firsthand.residues.identity import ProcessIdentity, identify
from firsthand.residues.search import Traces
from firsthand.residues.survivors import Handle, end_survivors, find_survivors

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
TOKEN = secrets.token_hex(16)


def identity_of(process: subprocess.Popen[bytes]) -> ProcessIdentity:
    identity = identify(process.pid)
    assert identity is not None
    return identity


def test_a_registered_survivor_is_ended(sleeper: Any) -> None:
    process = sleeper()
    traces = Traces(processes=(identity_of(process),))
    assert find_survivors(traces) == [identity_of(process)]
    (ending,) = end_survivors(traces, timeout_s=10)
    assert ending.problem == ""
    assert process.wait(10) == -9
    assert find_survivors(traces) == []
    assert end_survivors(traces, timeout_s=10) == []


@pytest.mark.parametrize(
    "change", [{"start": "1"}, {"boot": "00000000-0000-0000-0000-000000000000"}, {"start": ""}, {"boot": ""}]
)
def test_a_recycled_pid_is_never_signalled(sleeper: Any, change: dict[str, Any]) -> None:
    process = sleeper()
    stranger = dataclasses.replace(identity_of(process), **change)
    assert find_survivors(Traces(processes=(stranger,))) == []
    assert end_survivors(Traces(processes=(stranger,)), timeout_s=1) == []
    assert process.poll() is None


def test_a_process_that_has_ended_and_waits_to_be_collected_is_no_survivor(sleeper: Any) -> None:
    process = sleeper()
    identity = identity_of(process)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert identify(process.pid) == identity
    assert find_survivors(Traces(processes=(identity,))) == []


@linux
def test_a_process_that_was_never_entered_is_found_by_its_token(sleeper: Any) -> None:
    process = sleeper(f"firsthand-{TOKEN}")
    bystander = sleeper("firsthand-" + secrets.token_hex(16))
    traces = Traces(tokens=(TOKEN,))
    assert [found.pid for found in find_survivors(traces)] == [process.pid]
    end_survivors(traces, timeout_s=10)
    assert process.wait(10) == -9
    assert bystander.poll() is None


@linux
def test_the_searching_process_is_never_among_the_found() -> None:
    own = identify(os.getpid())
    assert own is not None
    assert own not in find_survivors(Traces(processes=(own,)))


RUN_ARGUMENT = "exec(__import__('sys').argv[1])"

FAMILY = """
import os, sys, time
for _ in range(3):
    if os.fork() == 0:
        if os.fork() == 0:
            os.setpgid(0, 0)
        time.sleep(600)
print(flush=True)
time.sleep(600)
"""


@linux
def test_the_session_that_a_survivor_leads_ends_with_it(sleeper: Any) -> None:
    leader = sleeper(FAMILY, program=RUN_ARGUMENT)
    leader.stdout.readline()
    endings = end_survivors(Traces(processes=(identity_of(leader),)), timeout_s=10)
    assert all(ending.problem == "" for ending in endings)
    # Four at least: a grandchild may not have left the family's group when the search came.
    assert len(endings) >= 4
    assert not [ending for ending in endings if find_survivors(Traces(processes=(ending.process,)))]


HEADLESS = """
import ctypes, platform, threading, time
started = threading.Event()
threading.Thread(target=lambda: (started.set(), time.sleep(600))).start()
started.wait()
print(flush=True)
ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[platform.machine()], 0)
"""


@linux
def test_a_process_whose_first_thread_is_gone_still_counts(sleeper: Any) -> None:
    process = sleeper(HEADLESS, TOKEN, program=RUN_ARGUMENT)
    process.stdout.readline()
    entry = Path(f"/proc/{process.pid}")
    while (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
        assert process.poll() is None
    assert (entry / "cmdline").read_bytes() == b""  # what hides it from a simpler search
    assert [found.pid for found in find_survivors(Traces(tokens=(TOKEN,)))] == [process.pid]
    end_survivors(Traces(tokens=(TOKEN,)), timeout_s=10)
    assert process.wait(10) == -9


BWRAP = shutil.which("bwrap")


@linux
@pytest.mark.skipif(BWRAP is None, reason="needs bwrap for a mount namespace")
def test_a_process_in_a_namespace_that_shows_the_sessions_folder_is_found(tmp_path: Any, sleeper: Any) -> None:
    folder = tmp_path / "sessions" / secrets.token_hex(8)
    (folder / "1-copy").mkdir(parents=True)
    assert BWRAP is not None
    sandbox = subprocess.Popen(
        [BWRAP, "--ro-bind", "/", "/", "--bind", str(folder / "1-copy"), "/tmp", "--", "sh", "-c", "echo; sleep 600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert sandbox.stdout is not None
    try:
        if sandbox.stdout.readline() != b"\n":
            pytest.skip("bwrap can't make a namespace here")
        # Who merely stands in the folder, a person's shell perhaps, is nobody's survivor.
        person = subprocess.Popen(["/bin/sleep", "600"], cwd=folder)
        try:
            traces = Traces(folder=f"/sessions/{folder.name}")
            assert len(find_survivors(traces)) >= 1
            assert all(ending.problem == "" for ending in end_survivors(traces, timeout_s=10))
            assert find_survivors(traces) == []
            sandbox.wait(10)
            assert person.poll() is None
        finally:
            person.kill()
            person.wait()
    finally:
        sandbox.kill()
        sandbox.wait()
        sandbox.stdout.close()


@linux
@pytest.mark.skipif(os.geteuid() != 0 if hasattr(os, "geteuid") else True, reason="needs a process of another user")
def test_one_that_may_not_be_ended_is_told(sleeper: Any) -> None:
    process = sleeper()
    identity = identity_of(process)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setresuid(65534, 65534, 65534)
            (ending,) = end_survivors(Traces(processes=(identity,)), timeout_s=10)
            os.write(writing, ending.problem.encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as answer:
        assert answer.read() == "this user may not end it"
    assert process.poll() is None


@linux
def test_a_process_is_found_by_its_environment_too(sleeper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    token = secrets.token_hex(16)
    with monkeypatch.context() as patched:
        patched.setenv("FIRSTHAND_SESSION", token)
        process = sleeper()
    assert [found.pid for found in find_survivors(Traces(tokens=(token,)))] == [process.pid]
    end_survivors(Traces(tokens=(token,)), timeout_s=10)
    assert process.wait(10) == -9


@linux
def test_those_that_lead_to_the_others_come_last(sleeper: Any) -> None:
    token = secrets.token_hex(16)
    script = "/bin/sh -c '/bin/sleep 600 & echo; wait' & wait"
    leader = subprocess.Popen(["/bin/sh", "-c", script, token], stdout=subprocess.PIPE, start_new_session=True)
    assert leader.stdout is not None
    leader.stdout.readline()
    found = find_survivors(Traces(tokens=(token,)))
    assert found[-1] == identity_of(leader)
    assert len(found) == 3
    end_survivors(Traces(tokens=(token,)), timeout_s=10)
    assert leader.wait(10) == -9
    leader.stdout.close()


@pytest.mark.parametrize("change", [{}, {"start": "1"}])
def test_without_a_process_descriptor_the_whole_group_goes_and_a_stranger_stays(
    sleeper: Any, change: dict[str, Any]
) -> None:
    """What kernels without pidfd get; on Linux too, so that it is tried where the tests run."""
    program = "import os, time; pid = os.fork(); pid and print(pid, flush=True); time.sleep(600)"
    leader = sleeper(program, program=RUN_ARGUMENT)
    child = int(leader.stdout.readline())
    handle = Handle(dataclasses.replace(identity_of(leader), **change), pidfd=None)
    if change:
        with pytest.raises(ProcessLookupError):
            handle.send(signal.SIGKILL)
        assert leader.poll() is None
        return
    kin = identify(child)
    assert kin is not None
    handle.send(signal.SIGKILL)
    assert leader.wait(10) == -9
    assert Handle(kin, pidfd=None).wait(time.monotonic() + 10)
