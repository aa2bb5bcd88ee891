"""One sandbox from its start to its proven end: descriptors, readiness, release, kill."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firsthand.isolation.interface import ProcessWatch
from firsthand_bubblewrap.script import GATE_COMM, GUARD_COMM, READY
from firsthand_bubblewrap.watch import children_of, stat_fields

_START_S: Final = 10.0
_LOOK_S: Final = 0.2
_END_S: Final = 1.5
# Places in /proc/PID/stat, counted from the state.
_START_TIME: Final = 19
_EXIT_CODE: Final = 49
_HALTED: Final = "TtZX"


class StartError(Exception):
    """Bwrap, or what stands between it and the command, could not set up; the command never ran.

    Attributes:
        ended: whether everything that was started is proved gone.
    """

    ended = True


@dataclass(frozen=True, slots=True)
class Status:
    """How the command itself ended, by the kernel's own record."""

    exit_code: int | None
    signal: int | None
    started: bool
    """False when the process still bore the gate's name: it never became the command."""
    leftovers: int
    """Live processes in the namespace beside the keeper."""


class Sandbox:
    """A started sandbox, waiting at its gate. Always `close()` it: that ends whatever lives in it.

    Args:
        launcher: path of bwrap.
        options: what stands before the command on its command line.
        command_line: what it starts as process 1 (`script.command_line`).
        seccomp: the filter program.
        go_pipe: where the named pipe that releases the gate is made.
        owner: the dropped uid, which the output pipes are given to; None where no uid is dropped.
        processes: the residue register.

    Attributes:
        stdout, stderr: reading ends, non-blocking; readiness is already taken off `stdout`.
        command_pidfd: readable once the command itself has ended.
        init_pid, keeper_pid: process 1 of the namespace and its child, as the host sees them.
    """

    def __init__(
        self,
        launcher: str,
        options: Sequence[str],
        command_line: Sequence[str],
        seccomp: bytes,
        go_pipe: Path,
        owner: int | None,
        processes: ProcessWatch,
    ) -> None:
        self._processes = processes
        self._open: list[int] = []
        self._registered: list[int] = []
        self._ended = False
        self._end_by = 0.0
        self.init_pid = 0
        self.keeper_pid = 0
        self._command_pid = 0
        self._command_start = ""
        self._init_pidfd = -1
        self.command_pidfd = -1
        try:
            with contextlib.ExitStack() as handed_over:
                self._bwrap = self._spawn(launcher, options, command_line, seccomp, go_pipe, owner, handed_over)
        except OSError as error:
            self._close_descriptors()
            raise StartError(f"{launcher} can't be started: {error}") from error
        except BaseException:
            self._close_descriptors()
            raise
        try:
            self._register(self._bwrap.pid)
            self._await_ready()
        except StartError as error:
            error.ended = self.close()
            raise
        except BaseException:
            self.close()
            raise

    def _spawn(
        self,
        launcher: str,
        options: Sequence[str],
        command_line: Sequence[str],
        seccomp: bytes,
        go_pipe: Path,
        owner: int | None,
        handed_over: contextlib.ExitStack,
    ) -> subprocess.Popen[bytes]:
        def hand_over(descriptor: int) -> int:
            handed_over.callback(os.close, descriptor)
            return descriptor

        # The host holds the go pipe open for both directions: writing never blocks, and nobody has to be there yet.
        go_pipe.unlink(missing_ok=True)
        os.mkfifo(go_pipe, 0o644)
        os.chmod(go_pipe, 0o644)
        self._go = self._own(os.open(go_pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
        guard_read, self._guard = os.pipe()
        hand_over(guard_read)
        self._own(self._guard)
        writing_ends = []
        for _ in range(2):
            reading_end, writing_end = os.pipe()
            self._own(reading_end)
            writing_ends.append(hand_over(writing_end))
            os.set_blocking(reading_end, False)
            if owner is not None:
                # Programs that open /dev/stdout anew need the right to it.
                os.fchown(writing_end, owner, owner)
        self.stdout, self.stderr = self._open[-2:]
        # A file, not a pipe: bwrap's outer half would die of a pipe without a reader, when the host is gone, and leave
        # its inner half waiting for ever.
        self._status = self._own(_memory_file("status", b""))
        options_fd = hand_over(_memory_file("options", "".join(f"{option}\0" for option in options).encode()))
        seccomp_fd = hand_over(_memory_file("seccomp", seccomp))
        head = ["--args", str(options_fd), "--seccomp", str(seccomp_fd), "--json-status-fd", str(self._status)]
        return subprocess.Popen(
            [launcher, *head, "--", *command_line],
            env={},
            cwd="/",
            stdin=guard_read,
            stdout=writing_ends[0],
            stderr=writing_ends[1],
            pass_fds=(self._status, options_fd, seccomp_fd),
            start_new_session=True,
            # Not the caller's: the same check would make files of other modes on another day.
            umask=0o022,
        )

    def release(self) -> None:
        """Let the gate become the command."""
        # Under memory pressure the kernel should choose the command before anything of the host's. A wish, no limit.
        with contextlib.suppress(OSError):
            Path(f"/proc/{self._command_pid}/oom_score_adj").write_text("1000")
        os.write(self._go, b"\n")

    def status(self) -> Status | None:
        """The end of the command, once `command_pidfd` is readable; None when the record was lost.

        It is lost only if something inside ended the keeper, which an ordinary user's command can do.
        """
        found = stat_fields(self._command_pid)
        if found is None:
            return None
        name, fields = found
        if fields[0] != "Z" or int(fields[1]) != self.keeper_pid or fields[_START_TIME] != self._command_start:
            return None
        code = int(fields[_EXIT_CODE])
        leftovers = sum(pid != self.keeper_pid and _lives(pid) for pid in children_of(self.init_pid))
        if os.WIFSIGNALED(code):
            return Status(exit_code=None, signal=os.WTERMSIG(code), started=name != GATE_COMM, leftovers=leftovers)
        return Status(exit_code=os.WEXITSTATUS(code), signal=None, started=name != GATE_COMM, leftovers=leftovers)

    def end(self) -> bool:
        """Kill the namespace and wait until it is empty; whether that could be established. Safe to call again.

        The kernel ends and collects every process of a PID namespace before it lets the end of process 1 be seen.
        """
        if not self._ended:
            # The time is given once: asked again, we only look.
            self._end_by = deadline = self._end_by or time.monotonic() + _END_S
            self._close_guard()
            self._ended = self._end_unready(deadline) if self._init_pidfd < 0 else self._end_ready(deadline)
        if self._ended:
            while self._registered:
                self._processes.ended(self._registered[0])
                self._registered.pop(0)
        return self._ended

    def _end_ready(self, deadline: float) -> bool:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._init_pidfd, signal.SIGKILL)
        return bool(_readable([self._init_pidfd], deadline - time.monotonic())) and self._bwrap_ended(deadline)

    def _end_unready(self, deadline: float) -> bool:
        """End what never was seen to be ready: bwrap, and process 1 if there is one, which is its child.

        While bwrap is stopped it can start no child behind our back, and collects none, so that no pid is used anew.
        """
        self._bwrap.send_signal(signal.SIGSTOP)
        while _state(self._bwrap.pid) not in _HALTED and time.monotonic() < deadline:
            os.sched_yield()
        children = children_of(self._bwrap.pid)
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while (alive := any(map(_lives, children))) and time.monotonic() < deadline:
            os.sched_yield()
        self._bwrap.kill()
        return self._bwrap_ended(deadline) and not alive

    def _bwrap_ended(self, deadline: float) -> bool:
        try:
            self._bwrap.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True

    def close(self) -> bool:
        """`end()` and give all descriptors back; whether the end could be established."""
        try:
            return self.end()
        finally:
            self._close_descriptors()

    def _await_ready(self) -> None:
        """Wait for the gate's word, then take hold of process 1, the keeper and the gate.

        Raises:
            StartError: with what bwrap printed.
        """
        deadline = time.monotonic() + _START_S
        said = errors = b""
        while len(said) < len(READY):
            remaining = deadline - time.monotonic()
            readable = _readable([self.stdout, self.stderr], min(remaining, _LOOK_S))
            if not readable and (remaining <= 0 or self._gate_ended()):
                raise StartError(_text(errors) or f"not ready after {_START_S:.0f} s")
            if self.stderr in readable:
                errors += os.read(self.stderr, 4096)
            if self.stdout in readable:
                chunk = os.read(self.stdout, len(READY) - len(said))
                if not chunk:
                    errors += self._rest_of_stderr(deadline)
                    raise StartError(_text(errors) or "bwrap ended without a word")
                said += chunk
        if said != READY:
            raise StartError(f"unexpected first output {said!r}")
        try:
            self.init_pid = int(json.loads(os.pread(self._status, 4096, 0).splitlines()[0])["child-pid"])
            self._init_pidfd = self._own(os.pidfd_open(self.init_pid))
            (self.keeper_pid,) = children_of(self.init_pid)
            (self._command_pid,) = children_of(self.keeper_pid)
            self._command_start = _start_time(self._command_pid)
            self.command_pidfd = self._own(os.pidfd_open(self._command_pid))
        except (OSError, ValueError, KeyError, IndexError) as error:
            raise StartError(f"the sandbox's processes could not be found: {error!r}") from error
        self._register(self.init_pid)
        # The gate may be ready first. The command must not run before both have become what protects them from it.
        while not all(_is_guard(pid) for pid in (self.init_pid, self.keeper_pid)):
            if time.monotonic() > deadline:
                raise StartError("process 1 and the keeper did not become the guard")
            os.sched_yield()

    def _gate_ended(self) -> bool:
        """Whether what should become the gate has ended without a word, while process 1 and the keeper live on."""
        for init in children_of(self._bwrap.pid):
            for keeper in children_of(init):
                gates = [stat_fields(pid) for pid in children_of(keeper)]
                if gates and all(gate is None or gate[1][0] in "ZX" for gate in gates):
                    return True
        return False

    def _rest_of_stderr(self, deadline: float) -> bytes:
        rest = b""
        while _readable([self.stderr], deadline - time.monotonic()):
            chunk = os.read(self.stderr, 4096)
            if not chunk:
                break
            rest += chunk
        return rest

    def _register(self, pid: int) -> None:
        self._processes.started(pid)
        self._registered.append(pid)

    def _own(self, descriptor: int) -> int:
        self._open.append(descriptor)
        return descriptor

    def _close_guard(self) -> None:
        if self._guard in self._open:
            self._open.remove(self._guard)
            os.close(self._guard)

    def _close_descriptors(self) -> None:
        while self._open:
            os.close(self._open.pop())


def _readable(descriptors: Sequence[int], timeout_s: float) -> list[int]:
    """Those of the descriptors that can be read or have ended; empty at the timeout. Unlike select, for any number."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll(max(0.0, timeout_s) * 1000)]


def _is_guard(pid: int) -> bool:
    found = stat_fields(pid)
    return found is not None and found[0] == GUARD_COMM


def _state(pid: int) -> str:
    """The kernel's letter for what a process does; X when it is gone."""
    found = stat_fields(pid)
    return "X" if found is None else found[1][0]


def _lives(pid: int) -> bool:
    return _state(pid) not in "ZX"


def _start_time(pid: int) -> str:
    found = stat_fields(pid)
    if found is None:
        raise ProcessLookupError(pid)
    return found[1][_START_TIME]


def _memory_file(name: str, content: bytes) -> int:
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace").strip()
