"""Driving commands, on Linux and macOS alike, through programs that stand in for sandbox-exec.

Nothing here shows that macOS confines: the stand-ins confine nothing. What is shown is that whatever sandbox-exec or
the command does, the outcome says the truth, in time, and nothing is left behind.
"""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from backends.seatbelt import standins
from firsthand.isolation.interface import IsolationError, Limits, Request, Workspace
from firsthand_seatbelt.backend import inside_text
from firsthand_seatbelt.enclosure import Means, SeatbeltEnclosure
from firsthand_seatbelt.interpreter import Interpreter
from firsthand_seatbelt.kernel import Kernel
from firsthand_seatbelt.profile import ProfileTemplate

if sys.platform == "linux":
    from backends.seatbelt.linux import Linux
else:
    pytest.skip("the process driving is exercised with Linux's own process table", allow_module_level=True)

SH = "/bin/sh"


@dataclass
class Watch:
    """A residue register that remembers."""

    alive: list[int] = field(default_factory=list)
    seen: list[int] = field(default_factory=list)

    def started(self, pid: int) -> None:
        # Entered before anything of the command runs, while the process is ours and alive.
        os.kill(pid, 0)
        self.alive.append(pid)
        self.seen.append(pid)

    def ended(self, pid: int) -> None:
        self.alive.remove(pid)


@dataclass
class Place:
    """A workspace, and enclosures around it."""

    workspace: Workspace
    watch: Watch
    launcher: Path
    interpreter: Interpreter
    limits: Limits = field(default_factory=Limits)
    kernel: Kernel = field(default_factory=Linux)

    @property
    def copy(self) -> Path:
        return self.workspace.copy

    def enclosure(self, launcher: str = standins.PASS_THROUGH) -> SeatbeltEnclosure:
        means = Means(
            sandbox_exec=standins.stand_in(self.launcher, launcher),
            template=ProfileTemplate.shipped(),
            inside=inside_text(),
            interpreter=self.interpreter,
            kernel=self.kernel,
        )
        return SeatbeltEnclosure(means, self.workspace, self.limits, self.watch)

    def sh(self, script: str, *, timeout_s: float = 20.0, cwd: str = ".") -> Request:
        return Request(argv=("sh", "-c", script), executable=SH, timeout_s=timeout_s, cwd=cwd)

    def python(self, script: str, *, timeout_s: float = 20.0) -> Request:
        # -I -S: only what the command line says, and quick.
        return Request(argv=("python", "-I", "-S", "-c", script), executable=sys.executable, timeout_s=timeout_s)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    for name in ("copy", "private", "launcher"):
        (tmp_path / name).mkdir(mode=0o700)
    workspace = Workspace(
        copy=tmp_path / "copy", shown_at=tmp_path / "copy", private=tmp_path / "private", token="t0k3n"
    )
    prefix = os.path.realpath(sys.base_prefix)
    interpreter = Interpreter(os.path.realpath(sys.executable), roots=(prefix,), links=())
    place = Place(workspace, Watch(), tmp_path / "launcher", interpreter)
    yield place
    assert place.watch.alive == [], "every process that was entered is known to be gone"
    assert not [pid for pid in place.watch.seen if _exists(pid)], "no process, not even a zombie, is left"
    assert list((tmp_path / "private").iterdir()) == [], "nothing of a command's HOME and TMPDIR is left"


def _exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _alive(pid: int) -> bool:
    """Orphans are collected by the system when it likes; a zombie has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


class TestTheEndOfACommand:
    @pytest.mark.parametrize("code", [0, 1, 2, 64, 65, 71, 126, 127, 137, 255])
    def test_its_exit_code_is_its_own(self, place: Place, code: int) -> None:
        """65 and 71 too: sandbox-exec's own failures have the same numbers."""
        result = place.enclosure().run(place.sh(f"echo out; echo err >&2; exit {code}"))
        assert (result.outcome.kind, result.outcome.exit_code) == ("exited", code)
        assert (result.stdout.data, result.stderr.data) == (b"out\n", b"err\n")
        assert result.outcome.cleanup == "may-linger"

    def test_its_signal_is_kept(self, place: Place) -> None:
        outcome = place.enclosure().run(place.sh("kill -SEGV $$")).outcome
        assert (outcome.kind, outcome.signal) == ("signalled", signal.SIGSEGV)

    def test_it_may_say_the_launchers_words(self, place: Place) -> None:
        result = place.enclosure().run(place.sh("echo 'stopped exec 1' >&3; echo ready; exit 0"))
        assert (result.outcome.kind, result.outcome.exit_code) == ("exited", 0)

    def test_the_words_descriptor_is_closed_for_it(self, place: Place) -> None:
        script = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))"
        assert place.enclosure().run(place.python(script)).stdout.data == b"[0, 1, 2, 3]\n"  # 3 is the listing itself

    def test_stdin_is_empty_and_no_terminal_is_there(self, place: Place) -> None:
        script = "import os,sys; print(sys.stdin.read()=='', os.isatty(0), os.getsid(0)==os.getpid()==os.getpgrp())"
        assert place.enclosure().run(place.python(script)).stdout.data == b"True False True\n"

    def test_a_closed_pipe_and_a_full_file_end_it_as_they_should(self, place: Place) -> None:
        """Python ignores SIGPIPE and SIGXFSZ; the command must not inherit that."""
        result = place.enclosure().run(place.sh("exec grep -i sigign /proc/self/status"))
        ignored = int(result.stdout.data.split()[1], 16)
        assert not ignored & (1 << (signal.SIGPIPE - 1))
        assert not ignored & (1 << (signal.SIGXFSZ - 1))


class TestWhatIsNoCheckFailure:
    @pytest.mark.parametrize(
        ("launcher", "said"),
        [
            (standins.PROFILE_ERROR, "refused the profile (exit 65)"),
            (standins.APPLY_ERROR, "from inside another one"),
            (standins.DENIED_EXEC, "execvp() of 'python' failed"),
            (standins.SILENT, "status 0"),
            (standins.KILLED, "status -11"),
            (standins.LYING, "status 0"),
        ],
        ids=["profile", "nested", "denied", "silent", "killed", "lying"],
    )
    def test_a_failing_launcher_is_a_failed_sandbox(self, place: Place, launcher: str, said: str) -> None:
        result = place.enclosure(launcher).run(place.sh("touch ran"))
        assert (result.outcome.kind, result.outcome.cleanup) == ("sandbox-failed", "complete")
        assert said in result.outcome.detail
        assert not (place.copy / "ran").exists()

    def test_a_launcher_that_is_not_there(self, place: Place) -> None:
        enclosure = place.enclosure()
        (place.launcher / "sandbox-exec").unlink()
        outcome = enclosure.run(place.sh("touch ran")).outcome
        assert (outcome.kind, outcome.cleanup) == ("sandbox-failed", "complete")
        assert not (place.copy / "ran").exists()

    def test_a_hanging_launcher_is_ended(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("firsthand_seatbelt.process.ConfinedGroup.await_ready.__defaults__", (0.2,), raising=True)
        outcome = place.enclosure(standins.HANGING).run(place.sh("touch ran")).outcome
        assert (outcome.kind, outcome.cleanup) == ("sandbox-failed", "complete")
        assert "not ready" in outcome.detail

    def test_a_program_that_is_missing_could_not_start(self, place: Place) -> None:
        request = Request(argv=("nothing",), executable="/nonexistent/nothing", timeout_s=5)
        outcome = place.enclosure().run(request).outcome
        assert (outcome.kind, outcome.detail) == ("could-not-start", "exec: No such file or directory")

    def test_a_program_that_may_not_be_executed_could_not_start(self, place: Place) -> None:
        """What a denied exec looks like: an errno, not the exit status 71 of a check."""
        (place.copy / "plain").write_text("#!/bin/sh\nexit 0\n")
        request = Request(argv=("plain",), executable=str(place.copy / "plain"), timeout_s=5)
        outcome = place.enclosure().run(request).outcome
        assert (outcome.kind, outcome.detail) == ("could-not-start", "exec: Permission denied")

    @pytest.mark.parametrize("cwd", ["link", "../private", "missing", "file"])
    def test_a_folder_outside_the_copy_is_no_place_to_start(self, place: Place, cwd: str, tmp_path: Path) -> None:
        (place.copy / "link").symlink_to(tmp_path)
        (place.copy / "file").touch()
        outcome = place.enclosure().run(place.sh("pwd", cwd=cwd)).outcome
        assert outcome.kind == "could-not-start"
        assert outcome.detail.startswith("cwd: ")

    def test_a_register_that_refuses_stops_everything(self, place: Place) -> None:
        class Refusing(Watch):
            def started(self, pid: int) -> None:
                super().started(pid)
                raise RuntimeError("no room")

        place.watch = Refusing()
        with pytest.raises(RuntimeError, match="no room"):
            place.enclosure().run(place.sh("touch ran"))
        assert not (place.copy / "ran").exists()

    def test_a_reporting_variable_cant_replace_a_fixed_one(self, place: Place) -> None:
        request = replace(place.sh("touch ran"), environment={"PATH": "/evil"})
        assert place.enclosure().run(request).outcome.kind == "sandbox-failed"
        assert not (place.copy / "ran").exists()


class TestItsSurroundings:
    def test_the_environment_is_built_from_empty(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SECRET", "canary")
        place.workspace = replace(place.workspace, path=(Path("/opt/tool/bin"),))
        request = replace(place.sh("env -0"), environment={"PYTEST_ADDOPTS": "-q"})
        result = place.enclosure().run(request)
        found = dict(item.split("=", 1) for item in result.stdout.data.decode().rstrip("\0").split("\0"))
        found.pop("_", None)
        found.pop("PWD", None)  # the shell's own
        found.pop("SHLVL", None)
        home, tmpdir = found.pop("HOME"), found.pop("TMPDIR")
        assert found == {
            "PATH": "/opt/tool/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "USER": "sandbox",
            "LOGNAME": "sandbox",
            "PYTHONNOUSERSITE": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_ADDOPTS": "-q",
        }
        assert {Path(home).parent.parent, Path(tmpdir).parent.parent} == {place.workspace.private}

    def test_no_secret_is_in_the_launchers_environment_either(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its environment from exec on is what KERN_PROCARGS2 would show of it."""
        monkeypatch.setenv("SECRET", "canary")
        spying = standins.PASS_THROUGH.replace("exec", "env >launcher-env; exec")
        spying = spying.replace("launcher-env", str(place.copy / "launcher-env"))
        place.enclosure(spying).run(place.sh("true"))
        assert "canary" not in (place.copy / "launcher-env").read_text()

    def test_home_and_tmpdir_are_new_and_private_for_every_command(self, place: Place) -> None:
        enclosure = place.enclosure()
        script = 'ls -A "$HOME" "$TMPDIR" | wc -w; touch "$HOME/x" "$TMPDIR/x"; echo "$HOME"; stat -c %a "$HOME"'
        first, second = (enclosure.run(place.sh(script)).stdout.data.decode().split() for _ in range(2))
        assert first[0] == second[0] == "2"  # the two names that ls prints itself
        assert first[1] != second[1]
        assert first[2] == "700"

    def test_what_a_command_locks_in_its_home_is_removed(self, place: Place) -> None:
        script = 'mkdir -p "$HOME/d/e"; touch "$HOME/d/e/f"; chmod 500 "$HOME/d/e"; chmod 0 "$HOME/d"'
        assert place.enclosure().run(place.sh(script)).outcome.exit_code == 0  # the fixture looks at the rest

    def test_it_starts_in_the_copy(self, place: Place) -> None:
        (place.copy / "a" / "b").mkdir(parents=True)
        assert place.enclosure().run(place.sh("pwd -P", cwd="a/b")).stdout.data.decode() == f"{place.copy}/a/b\n"

    def test_files_get_the_usual_mode_whatever_our_umask(self, place: Place) -> None:
        before = os.umask(0o077)
        try:
            place.enclosure().run(place.sh("touch made"))
        finally:
            os.umask(before)
        assert stat.S_IMODE((place.copy / "made").stat().st_mode) == 0o644

    def test_the_profile_names_the_paths_of_this_command_only(self, place: Place) -> None:
        recording = f'#!/bin/sh\nprintf "%s\\n" "$@" >>{place.launcher}/arguments\n' + standins.PASS_THROUGH[10:]
        enclosure = place.enclosure(recording)
        home = [enclosure.run(place.sh('printf %s "$HOME"')).stdout.data.decode() for _ in range(2)]
        lines = (place.launcher / "arguments").read_text().splitlines()
        assert [line for line in lines if line.startswith("HOME=")] == [f"HOME={path}" for path in home]
        text = "\n".join(line for line in lines if line.startswith(("(", " ", ";")))
        assert str(place.copy) not in text
        assert f"COPY={place.copy}" in lines
        assert "firsthand-t0k3n" in lines


class TestLimits:
    @pytest.mark.parametrize("stream", ["stdout", "stderr"])
    def test_a_flood_is_cut_and_ended(self, place: Place, stream: str) -> None:
        place.limits = Limits(output_bytes=100_000)
        redirect = ">&2" if stream == "stderr" else ""
        begun = time.monotonic()
        result = place.enclosure().run(place.sh(f"yes {redirect}", timeout_s=30))
        assert (result.outcome.kind, result.outcome.limit) == ("output-limit", stream)
        captured = getattr(result, stream)
        assert len(captured.data) == 100_000
        assert captured.total_bytes > 100_000
        assert time.monotonic() - begun < 10

    def test_exactly_the_limit_is_allowed(self, place: Place) -> None:
        place.limits = Limits(output_bytes=1000)
        result = place.enclosure().run(place.python("print('x' * 999)"))
        assert (result.outcome.kind, result.stdout.total_bytes) == ("exited", 1000)

    def test_both_streams_are_drained_together(self, place: Place) -> None:
        script = "import os\nfor _ in range(8):\n os.write(2, b'e'*65536)\n os.write(1, b'o'*65536)"
        result = place.enclosure().run(place.python(script))
        assert (result.outcome.exit_code, result.stdout.total_bytes, result.stderr.total_bytes) == (0, 2**19, 2**19)

    def test_a_large_file_is_refused_by_the_kernel(self, place: Place) -> None:
        place.limits = Limits(file_bytes=1 << 20)
        outcome = place.enclosure().run(place.sh("exec head -c 2000000 /dev/zero >big")).outcome
        assert (outcome.kind, outcome.signal) == ("signalled", signal.SIGXFSZ)
        assert (place.copy / "big").stat().st_size <= 1 << 20

    def test_no_core_and_bounded_processes(self, place: Place) -> None:
        place.limits = Limits(processes=100, memory_bytes=1 << 30)
        script = "import resource as r; print(r.getrlimit(r.RLIMIT_CORE)[1], r.getrlimit(r.RLIMIT_DATA)[1])"
        assert place.enclosure().run(place.python(script)).stdout.data == b"0 1073741824\n"
        script = "import resource as r; print(r.getrlimit(r.RLIMIT_NPROC)[1])"
        found = int(place.enclosure().run(place.python(script)).stdout.data)
        assert 100 < found < 100_000  # the user's own processes are added

    def test_a_growing_copy_is_noticed(self, place: Place) -> None:
        place.limits = Limits(copy_bytes=1 << 20)
        outcome = place.enclosure().run(place.sh("head -c 3000000 /dev/urandom >big; exec sleep 60")).outcome
        assert (outcome.kind, outcome.limit) == ("output-limit", "copy-size")

    def test_many_files_are_noticed(self, place: Place) -> None:
        place.limits = Limits(copy_entries=200)
        script = "i=0; while [ $i -lt 300 ]; do : >f$i; i=$((i+1)); done; exec sleep 60"
        outcome = place.enclosure().run(place.sh(script)).outcome
        assert (outcome.kind, outcome.limit) == ("output-limit", "copy-entries")

    def test_a_growing_tmpdir_is_noticed(self, place: Place) -> None:
        place.limits = Limits(scratch_bytes=1 << 20)
        outcome = place.enclosure().run(place.sh('head -c 3000000 /dev/urandom >"$TMPDIR/b"; exec sleep 60')).outcome
        assert (outcome.kind, outcome.limit) == ("output-limit", "copy-size")


class TestTime:
    def run(self, place: Place, script: str, timeout_s: float = 0.5) -> tuple[str, str, float]:
        begun = time.monotonic()
        result = place.enclosure().run(place.sh(script, timeout_s=timeout_s))
        taken = time.monotonic() - begun
        assert taken < timeout_s + 2
        return result.outcome.kind, result.stdout.data.decode(), taken

    def test_a_sleeper_is_ended(self, place: Place) -> None:
        assert self.run(place, "echo begun; exec sleep 60")[:2] == ("timed-out", "begun\n")

    def test_one_that_ignores_signals_is_ended(self, place: Place) -> None:
        assert self.run(place, "trap '' TERM INT HUP; echo begun; while :; do sleep 1; done")[0] == "timed-out"

    def test_background_children_of_the_group_end_with_it(self, place: Place) -> None:
        kind, out, _ = self.run(place, "sleep 61 & echo $!; wait")
        assert kind == "timed-out"
        assert not _alive(int(out))

    def test_background_children_are_ended_and_counted_after_a_good_end(self, place: Place) -> None:
        result = place.enclosure().run(place.sh("sleep 61 >/dev/null 2>&1 & echo $!"))
        assert (result.outcome.kind, result.outcome.leftovers) == ("exited", 1)
        assert not _alive(int(result.stdout.data))

    def test_a_child_that_holds_the_pipes_does_not_hold_us(self, place: Place) -> None:
        kind, _, taken = self.run(place, "sleep 61 & exit 0", timeout_s=20)
        assert (kind, taken < 5) == ("exited", True)

    @pytest.mark.parametrize("ending", ["wait", "exit 0"])
    def test_one_in_a_session_of_its_own_does_not_hold_us(
        self, place: Place, ending: str, cleanup_pids: list[int]
    ) -> None:
        """The known limit: it may linger, and the outcome says so; its open pipe ends nothing."""
        begun = time.monotonic()
        result = place.enclosure().run(place.sh(f"setsid sleep 62 & echo $!; {ending}", timeout_s=0.7))
        assert time.monotonic() - begun < 2.7
        assert result.outcome.kind == ("timed-out" if ending == "wait" else "exited")
        assert result.outcome.cleanup == "may-linger"
        cleanup_pids.append(int(result.stdout.data))

    def test_an_end_in_the_moment_of_the_deadline_keeps_its_status(self, place: Place) -> None:
        """Whatever wins, no exception escapes and the two accounts never mix."""
        enclosure = place.enclosure()
        rounds = int(os.environ.get("FIRSTHAND_RACE_ROUNDS", "25"))
        for turn in range(rounds):
            script = f"echo out; sleep {0.04 * turn / rounds:.4f}; exit 3"
            result = enclosure.run(place.sh(script, timeout_s=0.025))
            outcome = result.outcome
            assert (outcome.kind, outcome.exit_code) in {("exited", 3), ("timed-out", None)}
            assert outcome.kind == "timed-out" or result.stdout.data == b"out\n"


@pytest.fixture
def cleanup_pids() -> Iterator[list[int]]:
    pids: list[int] = []
    yield pids
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


class TestKilling:
    """The kernel's odd answers, put in the way of a real process."""

    def place_with(self, place: Place, kill: Callable[[Linux, int], None]) -> Place:
        class Odd(Linux):
            def kill_group(self, group_id: int) -> None:
                kill(self, group_id)

        place.kernel = Odd()
        return place

    def test_eperm_for_a_dead_leader_is_the_end_of_the_group(self, place: Place) -> None:
        """macOS says so of a group that holds nothing but a zombie."""

        def kill(kernel: Linux, group_id: int) -> None:
            if kernel.group(group_id) == ():
                raise PermissionError(1, "Operation not permitted")
            os.killpg(group_id, signal.SIGKILL)

        result = self.place_with(place, kill).enclosure().run(place.sh("echo kept; exit 5"))
        assert (result.outcome.kind, result.outcome.exit_code, result.stdout.data) == ("exited", 5, b"kept\n")
        assert result.outcome.cleanup == "may-linger"

    def test_eperm_for_a_live_leader_is_an_unknown_end(self, place: Place) -> None:
        pids: list[int] = []

        def kill(kernel: Linux, group_id: int) -> None:
            pids.append(group_id)
            raise PermissionError(1, "Operation not permitted")

        result = self.place_with(place, kill).enclosure().run(place.sh("exec sleep 63", timeout_s=0.2))
        assert (result.outcome.kind, result.outcome.cleanup) == ("timed-out", "unknown")
        assert place.watch.alive == [pids[0]], "its entry in the register stays"
        os.killpg(pids[0], signal.SIGKILL)
        os.waitpid(pids[0], 0)
        place.watch.alive.clear()

    def test_a_group_that_refuses_to_end_is_unknown(self, place: Place) -> None:
        class Immortal(Linux):
            def group(self, group_id: int) -> tuple[int, ...] | None:
                return (group_id, os.getpid())

        place.kernel = Immortal()
        outcome = place.enclosure().run(place.sh("exit 4")).outcome
        assert (outcome.kind, outcome.exit_code, outcome.cleanup) == ("exited", 4, "unknown")
        assert place.watch.alive == [place.watch.seen[0], os.getpid()], "who is still seen is entered too"
        place.watch.alive.clear()
        place.watch.seen.remove(os.getpid())

    def test_nothing_is_signalled_after_it_was_collected(self, place: Place) -> None:
        signalled: list[int] = []

        def kill(kernel: Linux, group_id: int) -> None:
            os.waitid(os.P_PID, group_id, os.WEXITED | os.WNOWAIT | os.WNOHANG)  # raises if it was collected already
            signalled.append(group_id)
            os.killpg(group_id, signal.SIGKILL)

        enclosure = self.place_with(place, kill).enclosure()
        for script in ("exit 0", "sleep 61 & exit 1", "kill -9 $$"):
            enclosure.run(place.sh(script))
        enclosure.run(place.sh("sleep 60", timeout_s=0.1))
        enclosure.end()
        assert set(signalled) == set(place.watch.seen)


class TestRewriting:
    def test_exact_bytes_and_mode_in_a_fresh_inode(self, place: Place, tmp_path: Path) -> None:
        target = place.copy / "src" / "value.py"
        target.parent.mkdir()
        target.write_bytes(b"x = 1\n")
        os.link(target, tmp_path / "outside")
        content = b"\xef\xbb\xbfx = 2\r\n\xff\xfe" + bytes(range(256)) * 5000
        for mode in (0o644, 0o755, 0o400, 0o666):
            place.enclosure().rewrite("src/value.py", content, mode)
            assert (target.read_bytes(), stat.S_IMODE(target.stat().st_mode)) == (content, mode)
        assert (tmp_path / "outside").read_bytes() == b"x = 1\n"
        assert sorted(path.name for path in target.parent.iterdir()) == ["value.py"]

    def test_a_missing_file_is_made(self, place: Place) -> None:
        place.enclosure().rewrite("new", b"", 0o600)
        assert (place.copy / "new").read_bytes() == b""

    @pytest.mark.parametrize("path", ["link", "dangling", "folder-link/x", "folder", "fifo", "none/x", "../out/x"])
    def test_it_follows_and_replaces_no_link(self, place: Place, tmp_path: Path, path: str) -> None:
        outside = tmp_path / "out"
        outside.mkdir()
        (outside / "x").write_bytes(b"precious")
        (place.copy / "link").symlink_to(outside / "x")
        (place.copy / "dangling").symlink_to(outside / "new")
        (place.copy / "folder-link").symlink_to(outside)
        (place.copy / "folder").mkdir()
        os.mkfifo(place.copy / "fifo")
        before = sorted(os.listdir(place.copy))
        with pytest.raises(IsolationError) as caught:
            place.enclosure().rewrite(path, b"evil", 0o644)
        assert path.rpartition("/")[2] in caught.value.where
        assert (outside / "x").read_bytes() == b"precious"
        assert os.listdir(outside) == ["x"]
        assert sorted(os.listdir(place.copy)) == before

    @pytest.mark.parametrize("launcher", [standins.PROFILE_ERROR, standins.APPLY_ERROR, standins.SILENT])
    def test_a_failing_sandbox_writes_nothing(self, place: Place, launcher: str) -> None:
        (place.copy / "a").write_bytes(b"old")
        with pytest.raises(IsolationError, match="could not be written"):
            place.enclosure(launcher).rewrite("a", b"new", 0o644)
        assert (place.copy / "a").read_bytes() == b"old"

    def test_a_full_disk_leaves_the_old_file_and_no_rest(self, place: Place) -> None:
        (place.copy / "a").write_bytes(b"old")
        place.limits = Limits(file_bytes=100)
        with pytest.raises(IsolationError):
            place.enclosure().rewrite("a", b"n" * 1000, 0o644)
        assert (place.copy / "a").read_bytes() == b"old"
        assert os.listdir(place.copy) == ["a"]


class TestUnconfinableWorkspaces:
    def test_a_dependency_folder_inside_the_source_is_refused_by_name(self, place: Place) -> None:
        place.workspace = replace(place.workspace, in_source=(Path("/Users/ann/project/.venv"),))
        with pytest.raises(IsolationError, match="until shown on a Mac") as caught:
            place.enclosure()
        assert "/Users/ann/project/.venv" in caught.value.where
        assert "toolchains" in caught.value.next_step

    def test_a_root_around_the_work_area_is_refused_before_anything_runs(self, place: Place, tmp_path: Path) -> None:
        place.workspace = replace(place.workspace, roots=(tmp_path,))
        with pytest.raises(IsolationError, match="inside one another"):
            place.enclosure()

    def test_a_root_is_resolved_through_its_parents(self, place: Place, tmp_path: Path) -> None:
        (tmp_path / "tools" / "node" / "bin").mkdir(parents=True)
        (tmp_path / "short").symlink_to(tmp_path / "tools")
        place.workspace = replace(
            place.workspace, roots=(tmp_path / "short" / "node",), links=((tmp_path / "short", "tools"),)
        )
        recording = f'#!/bin/sh\nprintf "%s\\n" "$@" >>{place.launcher}/arguments\n' + standins.PASS_THROUGH[10:]
        place.enclosure(recording).run(place.sh("true"))
        lines = (place.launcher / "arguments").read_text().splitlines()
        assert f"ROOT_0={tmp_path}/tools/node" in lines
        assert f"LINK_0={tmp_path}/short" in lines

    def test_a_copy_and_a_private_folder_behind_a_link_are_resolved(self, place: Place, tmp_path: Path) -> None:
        """As /var and /tmp are links on macOS: only the resolved spelling would match, so only that one is used."""
        (tmp_path / "var").symlink_to(tmp_path)
        place.workspace = replace(place.workspace, copy=tmp_path / "var" / "copy", private=tmp_path / "var" / "private")
        result = place.enclosure().run(place.sh('pwd -P; echo "$HOME"; echo "$TMPDIR"; d=$(mktemp -d) && rm -r "$d"'))
        assert result.outcome.exit_code == 0
        assert all(line.startswith(f"{tmp_path}/") for line in result.stdout.data.decode().split())
        assert "/var/" not in result.stdout.data.decode()
        place.enclosure().rewrite("made", b"x", 0o644)
        assert (tmp_path / "copy" / "made").read_bytes() == b"x"

    def test_no_inherited_descriptor(self, place: Place, tmp_path: Path) -> None:
        """No descriptor of the host reaches the command, not even one that is marked inheritable."""
        listener = socket.socket(socket.AF_UNIX)
        with listener:
            listener.bind(str(tmp_path / "s"))
            listener.listen()
            os.set_inheritable(listener.fileno(), True)  # the signature
            script = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))"
            assert place.enclosure().run(place.python(script)).stdout.data == b"[0, 1, 2, 3]\n"
