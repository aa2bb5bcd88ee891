"""What commands do, and that the host tells it exactly."""

from __future__ import annotations

import hashlib
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firsthand.isolation.interface import MIB, IsolationError, Limits, Request, Workspace


def living(mark: str) -> list[int]:
    """Processes of the host whose command line bears a mark."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark.encode() in (entry / "cmdline").read_bytes() and int(entry.name) != os.getpid():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize("code", [0, 1, 2, 125, 126, 127, 128, 137, 139, 255])
def test_exit_codes_are_told_as_they_are(bench: Any, code: int) -> None:
    outcome = bench.shell(f"exit {code}").outcome
    assert (outcome.kind, outcome.exit_code, outcome.cleanup) == ("exited", code, "complete")


@pytest.mark.parametrize(
    ("name", "number"), [("KILL", 9), ("SEGV", 11), ("ABRT", 6), ("INT", 2), ("PIPE", 13), ("TERM", 15)]
)
def test_signals_are_no_exit_codes(bench: Any, name: str, number: int) -> None:
    outcome = bench.shell(f"kill -{name} $$").outcome
    assert (outcome.kind, outcome.signal, outcome.exit_code) == ("signalled", number, None)


def test_no_signal_is_ignored_inside_whatever_the_caller_ignores(bench: Any) -> None:
    # A shell that starts something in the background makes it ignore SIGINT and SIGQUIT, for good.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        ignored = int(bench.shell("grep SigIgn /proc/self/status").stdout.data.split()[1], 16)
    finally:
        signal.signal(signal.SIGHUP, before)
    # Of signals 32 and 33 the C library lets nobody change the handling.
    assert ignored & ~(0b11 << 31) == 0


def test_a_missing_program_could_not_start(bench: Any) -> None:
    outcome = bench.run("/nonexistent/program").outcome
    assert outcome.kind == "could-not-start"
    assert "not found" in outcome.detail


def test_a_script_without_its_interpreter_could_not_start(bench: Any) -> None:
    script = bench.copy / "script"
    script.write_text("#!/nonexistent/interpreter\n")
    script.chmod(0o755)
    assert bench.run("/srv/firsthand-test/project/script").outcome.kind == "could-not-start"


@pytest.mark.parametrize("code", [126, 127])
def test_a_command_that_says_126_or_127_itself_has_run(bench: Any, code: int) -> None:
    assert bench.shell(f"exit {code}").outcome.kind == "exited"


def test_setting_up_that_fails_is_not_a_failed_command(bench: Any) -> None:
    result = bench.shell("exit 0", cwd="no/such/folder")
    assert result.outcome.kind == "sandbox-failed"
    assert "no/such/folder" in result.outcome.detail


def test_both_streams_come_apart_and_whole(bench: Any) -> None:
    result = bench.shell("printf out; printf err >&2")
    assert (result.stdout.data, result.stderr.data) == (b"out", b"err")
    assert result.stdout.sha256 == hashlib.sha256(b"out").hexdigest()


def test_a_flood_is_cut_at_the_limit_and_ended(bench: Any) -> None:
    start = time.monotonic()
    result = bench.shell("yes", timeout_s=30)
    assert (result.outcome.kind, result.outcome.limit) == ("output-limit", "stdout")
    assert len(result.stdout.data) == result.stdout.total_bytes == MIB
    assert time.monotonic() - start < 5


def test_exactly_the_limit_is_no_flood(bench: Any) -> None:
    result = bench.shell(f"head -c {MIB} /dev/zero")
    assert (result.outcome.kind, result.outcome.exit_code, len(result.stdout.data)) == ("exited", 0, MIB)


def test_one_more_byte_is_a_flood(bench: Any) -> None:
    result = bench.shell(f"head -c {MIB + 1} /dev/zero >&2")
    assert (result.outcome.kind, result.outcome.limit, len(result.stderr.data)) == ("output-limit", "stderr", MIB)


@pytest.mark.parametrize(
    "script",
    [
        "sleep 60 & wait",
        "setsid sleep 60 & wait",
        "trap '' TERM INT HUP; while :; do :; done",
        "(trap '' TERM; setsid sleep 60 >/dev/null 2>&1 </dev/null &) ; sleep 60",
    ],
)
def test_the_deadline_ends_everything(bench: Any, script: str) -> None:
    start = time.monotonic()
    outcome = bench.shell(f"echo before; {script}", timeout_s=0.5)
    took = time.monotonic() - start
    assert (outcome.outcome.kind, outcome.outcome.cleanup, outcome.stdout.data) == (
        "timed-out",
        "complete",
        b"before\n",
    )
    assert took < 0.5 + 2


def test_what_outlives_its_command_is_found_and_ended(bench: Any) -> None:
    mark = f"{secrets.randbelow(10**6) + 10**6}"
    outcome = bench.shell(f"setsid sleep {mark} >/dev/null 2>&1 & exit 0").outcome
    assert (outcome.kind, outcome.exit_code, outcome.leftovers, outcome.cleanup) == ("exited", 0, 1, "complete")
    assert living(mark) == []


def test_zombies_are_no_leftovers(bench: Any) -> None:
    outcome = bench.shell("for i in 1 2 3 4 5; do (true &) ; done; sleep 0.2; exit 0").outcome
    assert (outcome.exit_code, outcome.leftovers) == (0, 0)


def test_ending_the_keeper_never_makes_a_green(bench: Any) -> None:
    # As root the keeper belongs to another uid and can't be ended; as an ordinary user the record is lost, and said so.
    outcome = bench.shell("kill -9 2 2>/dev/null && sleep 0.1; exit 0").outcome
    if os.geteuid() == 0:
        assert (outcome.kind, outcome.exit_code) == ("exited", 0)
    else:
        assert outcome.kind == "sandbox-failed"
        assert "status was lost" in outcome.detail


def test_the_first_process_can_not_be_ended_from_inside(bench: Any) -> None:
    assert bench.shell("kill -9 1; kill -STOP 1; echo still here").stdout.data == b"still here\n"


@pytest.mark.parametrize("pid", [1, 2])
def test_the_guard_can_not_be_taken_over(bench: Any, pid: int) -> None:
    # Without an unreadable guard an ordinary user's command opens the guard pipe for writing and outlives the host.
    for attempt in (
        f"exec 9>/proc/{pid}/fd/0",
        f"exec 9</proc/{pid}/fd/0",
        f"cat /proc/{pid}/environ",
        f"exec 9</proc/{pid}/mem",
    ):
        result = bench.shell(f"{attempt} && echo REACHED")
        assert b"REACHED" not in result.stdout.data
        assert b"ermission denied" in result.stderr.data
    own = bench.shell("exec 9>/proc/$$/fd/1 && echo REACHED")
    assert own.stdout.data == b"REACHED\n", "the control: what is refused above works on the command's own process"


def test_output_can_be_opened_anew(bench: Any) -> None:
    result = bench.shell("echo one > /dev/stdout; echo two > /dev/stderr")
    assert (result.stdout.data, result.stderr.data) == (b"one\n", b"two\n")


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_commands_have_the_same_umask_whatever_the_callers(bench: Any, umask: int) -> None:
    before = os.umask(umask)
    try:
        assert bench.shell("umask").stdout.data == b"0022\n"
    finally:
        os.umask(before)


def test_stdin_is_empty(bench: Any) -> None:
    assert bench.shell("cat; echo end").stdout.data == b"end\n"


def test_no_descriptor_but_the_three_is_open(bench: Any) -> None:
    read, write = os.pipe()
    try:
        os.set_inheritable(read, True)
        os.set_inheritable(write, True)
        # Not through a pipeline: while it makes one, the shell itself holds a further descriptor.
        listed = bench.shell("ls /proc/$$/fd").stdout.data
    finally:
        os.close(read)
        os.close(write)
    assert listed.split() == [b"0", b"1", b"2"]


def test_the_environment_is_the_fixed_one(bench: Any) -> None:
    lines = bench.run("/usr/bin/env", environment={"REPORT": "here"}).stdout.data.decode().splitlines()
    assert dict(line.split("=", 1) for line in lines) == {
        "PATH": "/usr/bin:/bin",
        "HOME": "/run/home",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "USER": "sandbox",
        "LOGNAME": "sandbox",
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "REPORT": "here",
    }


def test_nothing_of_one_command_is_there_for_the_next(bench: Any) -> None:
    places = ("/tmp", "/run/home", "/dev/shm", "/var/tmp")
    assert bench.shell("; ".join(f"echo x > {place}/left" for place in places)).outcome.exit_code == 0
    assert bench.shell("ls -A " + " ".join(f"{place}/" for place in places) + " | grep left").outcome.exit_code == 1


def test_the_copy_stands_at_the_sources_place(bench: Any) -> None:
    result = bench.shell("pwd; cat a.txt; echo new > b.txt")
    assert result.stdout.data == b"/srv/firsthand-test/project\nhello\n"
    assert (bench.copy / "b.txt").read_text() == "new\n"


def test_files_and_memory_and_processes_are_limited(make_bench: Callable[..., Any]) -> None:
    limits = Limits(processes=20, memory_bytes=256 * MIB, file_bytes=MIB)
    bench = make_bench(limits)
    assert bench.shell("head -c 3000000 /dev/zero > big").outcome.exit_code != 0
    assert (bench.copy / "big").stat().st_size == MIB
    forks = bench.shell("i=0; while [ $i -lt 100 ]; do sleep 5 & i=$((i+1)); done; wait", timeout_s=3)
    assert b"Cannot fork" in forks.stderr.data or b"Resource temporarily" in forks.stderr.data


def test_a_copy_that_grows_too_large_ends_the_command(make_bench: Callable[..., Any]) -> None:
    bench = make_bench(Limits(copy_bytes=4 * MIB))
    script = "i=0; while :; do head -c 1000000 /dev/zero > f$i; i=$((i+1)); done"
    outcome = bench.shell(script, timeout_s=20).outcome
    assert (outcome.kind, outcome.limit) == ("output-limit", "copy-size")


def test_a_copy_with_too_many_files_ends_the_command(make_bench: Callable[..., Any]) -> None:
    bench = make_bench(Limits(copy_entries=500))
    outcome = bench.shell("i=0; while :; do : > f$i; i=$((i+1)); done", timeout_s=20).outcome
    assert (outcome.kind, outcome.limit) == ("output-limit", "copy-entries")


def test_memory_of_all_processes_together_ends_the_command(make_bench: Callable[..., Any]) -> None:
    bench = make_bench(Limits(memory_bytes=64 * MIB, processes=50))
    one = "awk 'BEGIN { s = \"x\"; while (length(s) < 16000000) s = s s; while (1) ; }' &"
    outcome = bench.shell(f"{one * 8} wait", timeout_s=20).outcome
    assert (outcome.kind, outcome.limit) == ("output-limit", "memory")


def test_scratch_space_is_limited(make_bench: Callable[..., Any]) -> None:
    bench = make_bench(Limits(scratch_bytes=MIB))
    for place in ("/tmp", "/run/home", "/dev/shm"):
        result = bench.shell(f"head -c 3000000 /dev/zero > {place}/x")
        assert b"No space left" in result.stderr.data


def test_rewrite_is_exact(bench: Any) -> None:
    data = b"\xef\xbb\xbfa\r\nb\rc\nx = 1\xff\x00"
    old = (bench.copy / "a.txt").stat().st_ino
    bench.enclosure.rewrite("a.txt", data, 0o640)
    status = (bench.copy / "a.txt").stat()
    assert (bench.copy / "a.txt").read_bytes() == data
    assert status.st_mode & 0o7777 == 0o640
    assert status.st_ino != old
    assert sorted(os.listdir(bench.copy)) == ["a.txt"]


@pytest.mark.parametrize("name", ["-n", "--", "a b", "ü", "*", "n" * 255])
def test_rewrite_takes_any_name_as_it_is(bench: Any, name: str) -> None:
    bench.enclosure.rewrite(name, b"new", 0o600)
    assert (bench.copy / name).read_bytes() == b"new"
    assert sorted(os.listdir(bench.copy)) == sorted(["a.txt", name])


def test_a_rewrite_that_fails_leaves_nothing(bench: Any) -> None:
    (bench.copy / "folder").mkdir()
    (bench.copy / "folder" / "x").write_text("x")
    with pytest.raises(IsolationError):
        bench.enclosure.rewrite("folder", b"new", 0o644)
    assert sorted(os.listdir(bench.copy)) == ["a.txt", "folder"]


def test_rewrite_replaces_a_link_and_follows_none(bench: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    (bench.copy / "a.txt").unlink()
    (bench.copy / "a.txt").symlink_to(outside)
    bench.enclosure.rewrite("a.txt", b"new", 0o644)
    assert outside.read_text() == "untouched"
    assert not (bench.copy / "a.txt").is_symlink()


def test_rewrite_through_a_linked_folder_reaches_nothing_outside(bench: Any, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o777)
    (bench.copy / "sub").symlink_to(folder)
    with pytest.raises(IsolationError):
        bench.enclosure.rewrite("sub/x", b"new", 0o644)
    assert list(folder.iterdir()) == []


def test_a_command_may_run_from_a_thread_that_ends(bench: Any) -> None:
    # The kernel's parent-death signal follows the thread that started a process, not the process.
    results: list[Any] = []
    worker = threading.Thread(target=lambda: results.append(bench.shell("sleep 0.2; echo done")))
    worker.start()
    worker.join()
    assert results[0].stdout.data == b"done\n"


@pytest.mark.parametrize("path", ["/", "/etc/project", "/proc/x", "/tmp", "/usr", "/run/home", "/run/firsthand"])
def test_places_that_the_sandbox_has_of_its_own_are_refused(backend: Any, tmp_path: Path, path: str) -> None:
    for name in ("copy", "private"):
        (tmp_path / name).mkdir()
    workspace = Workspace(copy=tmp_path / "copy", shown_at=Path(path), private=tmp_path / "private")
    with pytest.raises(IsolationError) as caught, backend.enclose(workspace, Limits(), None):
        pass
    assert caught.value.where == path


@pytest.mark.parametrize(
    "place", ["/tmp/x/project", "/root/deep/project", "/home/someone/project", "/var/lib/p", "/usr/src"]
)
def test_sources_at_usual_places_can_be_shown(backend: Any, tmp_path: Path, place: str) -> None:
    for name in ("copy", "private"):
        (tmp_path / name).mkdir()
    (tmp_path / "copy" / "a").write_text("mine")

    class Watch:
        def started(self, pid: int) -> None: ...
        def ended(self, pid: int) -> None: ...

    workspace = Workspace(copy=tmp_path / "copy", shown_at=Path(place), private=tmp_path / "private")
    with backend.enclose(workspace, Limits(), Watch()) as enclosure:
        argv = ("/usr/bin/sh", "-c", "pwd; cat a; echo > b")
        result = enclosure.run(Request(argv=argv, executable=argv[0], timeout_s=5))
    assert (result.stdout.data, result.outcome.exit_code) == (f"{place}\nmine".encode(), 0)
