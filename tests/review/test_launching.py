"""The plain launcher alone: environment, streams, limits and the end of everything it started."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from firsthand.residues import Session, StateDirectory
from firsthand.review.interface import Exit, Launch, Process, ReviewError
from firsthand.review.launching import PlainLauncher

PYTHON = sys.executable


@contextmanager
def launched(tmp_path: Path, argv: list[str], *, budget_s: float = 30.0, **fields: Any) -> Iterator[Process]:
    state = StateDirectory.open(tmp_path / "state", source=tmp_path / "source")
    with Session.open(state) as session:
        private = session.tree("run")
        launcher = PlainLauncher(session, private, time.monotonic() + budget_s)
        given: dict[str, Any] = {"environment": {}, "cwd": private, **fields}
        with launcher.start(Launch(argv=tuple(argv), **given)) as process:
            yield process


def ended(tmp_path: Path, argv: list[str], **fields: Any) -> tuple[list[bytes], Exit]:
    with launched(tmp_path, argv, **fields) as process:
        return list(process.lines()), process.wait()


def test_the_environment_is_what_was_given_and_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "1")
    lines, end = ended(tmp_path, ["/usr/bin/env"], environment={"A": "b"})
    assert end == Exit(kind="exited", code=0)
    assert {line.split(b"=")[0] for line in lines} == {b"A", b"FIRSTHAND_SESSION"}


def test_lines_end_at_line_feeds_only_and_the_rest_is_a_line(tmp_path: Path) -> None:
    text = "a\u2028b\x85c\x0bd\re\n\nlast"
    lines, _ = ended(tmp_path, ["/bin/cat"], stdin=text.encode())
    assert lines == text.encode().split(b"\n")


def test_a_large_input_and_output_do_not_wait_for_each_other(tmp_path: Path) -> None:
    data = (b"x" * 999 + b"\n") * 4000
    lines, end = ended(tmp_path, ["/bin/cat"], stdin=data)
    assert len(lines) == 4000
    assert end.code == 0


def test_a_group_of_its_own_without_a_terminal(tmp_path: Path) -> None:
    lines, _ = ended(tmp_path, [PYTHON, "-c", "import os; print(os.getpid() == os.getpgid(0) == os.getsid(0))"])
    assert lines == [b"True"]


def test_standard_error_is_kept_at_its_end(tmp_path: Path) -> None:
    script = "import sys; sys.stderr.write('x' * 300000 + 'end'); sys.exit(3)"
    _, end = ended(tmp_path, [PYTHON, "-c", script])
    assert (end.kind, end.code, len(end.stderr)) == ("exited", 3, 65536)
    assert end.stderr.endswith(b"end")


def test_a_signal_is_told_apart_from_an_exit(tmp_path: Path) -> None:
    _, end = ended(tmp_path, ["/bin/sh", "-c", "kill -9 $$"])
    assert (end.kind, end.signal, end.code) == ("signalled", signal.SIGKILL, None)


def test_a_program_that_can_t_be_started_is_an_end(tmp_path: Path) -> None:
    lines, end = ended(tmp_path, ["/nowhere/program"])
    assert (lines, end.kind) == ([], "could-not-start")
    assert "/nowhere/program" in end.detail


@pytest.mark.parametrize("argv", [["cat"], []])
def test_a_name_that_the_path_would_decide_is_refused(tmp_path: Path, argv: list[str]) -> None:
    with pytest.raises(ReviewError, match="absolute"):
        ended(tmp_path, argv)


def test_time_is_the_smaller_of_budget_and_limit(tmp_path: Path) -> None:
    for fields in ({"budget_s": 0.3}, {"timeout_s": 0.3}):
        begun = time.monotonic()
        _, end = ended(tmp_path, ["/bin/sleep", "60"], **fields)
        assert end.kind == "timed-out"
        assert time.monotonic() - begun < 3


def test_who_ignores_the_request_to_end_is_made_to(tmp_path: Path) -> None:
    begun = time.monotonic()
    _, end = ended(tmp_path, ["/bin/sh", "-c", "trap '' TERM; while :; do sleep 1; done"], timeout_s=0.3)
    assert (end.kind, end.clean) == ("timed-out", True)
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(("count", "kind"), [(1000, "exited"), (1001, "output-limit")])
def test_output_up_to_the_limit_is_accepted(tmp_path: Path, count: int, kind: str) -> None:
    lines, end = ended(tmp_path, ["/usr/bin/head", "-c", str(count), "/dev/zero"], output_limit_bytes=1000)
    assert end.kind == kind
    if kind == "exited":
        assert lines == [b"\0" * 1000]


def test_a_line_beyond_its_limit_ends_the_program(tmp_path: Path) -> None:
    lines, end = ended(tmp_path, ["/usr/bin/head", "-c", "200000", "/dev/zero"], line_limit_bytes=100_000)
    assert (lines, end.kind) == ([], "output-limit")


def test_stop_from_another_thread_ends_it(tmp_path: Path) -> None:
    with launched(tmp_path, ["/bin/sh", "-c", "echo ready; exec sleep 60"]) as process:
        lines = process.lines()
        assert next(lines) == b"ready"
        stopper = threading.Thread(target=process.stop)
        stopper.start()
        assert list(lines) == []
        stopper.join()
        assert process.wait().kind in {"cancelled", "signalled"}


def test_leaving_the_context_ends_group_and_kin(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, time\n"
        "quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        "child = subprocess.Popen(['/bin/sleep', '60'], **quiet)\n"
        "kin = subprocess.Popen(['/bin/sleep', '60'], start_new_session=True, **quiet)\n"
        "print(child.pid, kin.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    state = StateDirectory.open(tmp_path / "state", source=tmp_path / "source")
    with Session.open(state) as session:
        private = session.tree("run")
        launcher = PlainLauncher(session, private, time.monotonic() + 30)
        with launcher.start(Launch(argv=(PYTHON, "-c", script), environment={}, cwd=private)) as process:
            pids = [int(pid) for pid in next(process.lines()).split()]
            assert all(alive(pid) for pid in pids)
        # Before the session's own end, which would end them too.
        assert not any(alive(pid) for pid in pids)


def test_an_exception_of_the_provider_ends_the_program(tmp_path: Path) -> None:
    started: list[int] = []

    def fail() -> None:
        with launched(tmp_path, ["/bin/sleep", "60"]) as process:
            started.append(process.pid)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not alive(started[0])


def test_a_pipe_that_a_descendant_keeps_open_is_not_waited_for(tmp_path: Path) -> None:
    begun = time.monotonic()
    lines, end = ended(tmp_path, ["/bin/sh", "-c", "setsid sleep 60 & echo done"])
    assert lines == [b"done"]
    assert (end.kind, end.code, end.clean) == ("exited", 0, True)
    assert time.monotonic() - begun < 5


def test_a_program_that_closes_its_output_and_lives_on_is_ended(tmp_path: Path) -> None:
    begun = time.monotonic()
    lines, end = ended(tmp_path, ["/bin/sh", "-c", "exec >&- 2>&-; sleep 60"])
    assert (lines, end.kind) == ([], "signalled")
    assert time.monotonic() - begun < 6


def test_a_credential_is_registered_and_only_inside_the_folder(tmp_path: Path) -> None:
    state = StateDirectory.open(tmp_path / "state", source=tmp_path / "source")
    with Session.open(state) as session:
        private = session.tree("run")
        launcher = PlainLauncher(session, private, time.monotonic() + 5)
        assert launcher.credential(private / "home" / "login") == private / "home" / "login"
        assert b"login" in (session.folder / "register.jsonl").read_bytes()
        with pytest.raises(ReviewError, match="private folder"):
            launcher.credential(tmp_path / "login")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in {b"Z", b"X"}
