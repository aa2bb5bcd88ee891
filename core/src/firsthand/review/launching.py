"""The plain launcher: a reviewer's program as a process group of this user, bounded, streamed and ended as a whole.

What it starts is no sandbox. It inherits nothing, is entered into the residue register before anyone relies on its
end, and carries a token in its environment, by which descendants that left the group are found and ended too.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal, Protocol, cast

from firsthand.residues.search import Traces
from firsthand.residues.survivors import end_survivors
from firsthand.review.interface import Exit, Launch, Process, ReviewError
from firsthand.review.transcript import overrun

_SETPRIV: Final = "/usr/bin/setpriv"
TOKEN_VARIABLE: Final = "FIRSTHAND_SESSION"  # noqa: S105 - a name, and what it names is no secret either
"""What a launched process carries its session's token in."""

_LOOK_S: Final = 0.05
_GRACE_S: Final = 1.0
_LINGER_S: Final = 2.0
_END_S: Final = 2.0
_CHUNK_BYTES: Final = 64 * 1024
_STDERR_BYTES: Final = 64 * 1024

_Limit = Literal["timed-out", "output-limit", "transcript-limit", "cancelled"]


class Register(Protocol):
    """Where processes and credentials are entered before they exist; `residues.Session` is one."""

    token: str

    def started(self, pid: int) -> None:
        """See `ProcessWatch`."""

    def ended(self, pid: int) -> None:
        """See `ProcessWatch`."""

    def credential(self, path: Path) -> Path:
        """Enter a file that will hold a credential."""


def _tie(program: str) -> tuple[str, ...]:
    """What stands before a command line so that the kernel ends the program when this process dies, where that exists.

    The signal follows the thread that starts the program; a provider's call lasts as long as its program, so that
    thread does too. A program that can't be executed is started plainly: only then does its failure show as what it is.
    """
    if sys.platform != "linux" or not os.access(_SETPRIV, os.X_OK) or not os.access(program, os.X_OK):
        return ()
    return (_SETPRIV, "--pdeathsig", "KILL", "--")


class PlainLauncher:
    """Implements `Launcher` without confinement.

    Args:
        register: the residue register.
        private: the dispatch's private folder; the size of all that is in it is watched while a process runs.
        deadline: moment of the monotonic clock at which everything is ended.
    """

    level: Literal["plain", "confined"] = "plain"

    def __init__(self, register: Register, private: Path, deadline: float) -> None:
        self._register = register
        self._private = private
        self._deadline = deadline

    @contextmanager
    def start(self, launch: Launch) -> Iterator[Process]:
        """See `Launcher`."""
        if not launch.argv or not os.path.isabs(launch.argv[0]) or not launch.cwd.is_absolute():
            raise ReviewError(
                "a program is started by its absolute path, in an absolute folder",
                where=" ".join(launch.argv[:1]),
                next_step="report it to the provider's authors",
            )
        deadline = self._deadline
        if launch.timeout_s is not None:
            deadline = min(deadline, time.monotonic() + launch.timeout_s)
        process = PlainProcess(launch, self._register, lambda: overrun(self._private), deadline)
        try:
            yield process
        finally:
            process.close()

    def credential(self, path: Path) -> Path:
        """See `Launcher`."""
        if not path.is_relative_to(self._private):
            raise ReviewError(
                "a credential may only lie in the private folder of its dispatch",
                where=str(path),
                next_step="report it to the provider's authors",
            )
        return self._register.credential(path)


@dataclass
class _Input:
    left: memoryview


class PlainProcess:
    """Implements `Process`. All pipes are served together, in the thread that asks for lines or for the end."""

    def __init__(self, launch: Launch, register: Register, excess: Callable[[], str], deadline: float) -> None:
        self._launch = launch
        self._register = register
        self._excess = excess
        self._deadline = deadline
        self._lines: deque[bytes] = deque()
        self._partial = bytearray()
        self._stderr = bytearray()
        self._read_bytes = 0
        self._limit: _Limit | None = None
        self._detail = ""
        self._next_look = 0.0
        self._kill_at: float | None = None
        self._exit: Exit | None = None
        self._guard = threading.Lock()
        self._reaped = False
        self._stopping = False
        self._selector = selectors.DefaultSelector()
        self.pid = 0
        # Of this launch alone: the session's other processes are not its kin.
        self._token = f"{register.token}-{secrets.token_hex(8)}"
        try:
            self._process = self._spawn()
        except (OSError, ValueError) as error:
            self._selector.close()
            self._exit = Exit(kind="could-not-start", detail=str(error))
            return
        self.pid = self._process.pid
        try:
            self._register.started(self.pid)
        except BaseException:
            self._conclude()
            raise

    def lines(self) -> Iterator[bytes]:
        """See `Process`."""
        while True:
            while self._lines:
                yield self._lines.popleft()
            if self._exit is not None or not self._open("stdout"):
                break
            # A descendant may keep the pipe open for ever: after the program's end only what is there is taken.
            over = self._over()
            if not self._turn(0 if over else _LOOK_S) and over:
                break
        if self._partial and self._limit is None:
            rest = bytes(self._partial)
            self._partial.clear()
            yield rest

    def wait(self) -> Exit:
        """See `Process`."""
        closed_at: float | None = None
        while self._exit is None and not self._over():
            self._lines.clear()
            self._turn(_LOOK_S)
            now = time.monotonic()
            if not self._open("stdout"):
                closed_at = now if closed_at is None else closed_at
                if now - closed_at > _LINGER_S:
                    # It closed its output and lives on: nothing more can come of it.
                    self._end(signal.SIGKILL)
        return self._exit if self._exit is not None else self._conclude()

    def stop(self) -> None:
        """See `Process`."""
        self._stopping = True
        self._end(signal.SIGTERM)

    def close(self) -> None:
        """End what is left of the group, drop what it prints, and give everything back; further calls do nothing."""
        if self._exit is None:
            if not self._over() and self._limit is None:
                self._limit = "cancelled"
            self._end(signal.SIGKILL)
            self._conclude()

    def _spawn(self) -> subprocess.Popen[bytes]:
        launch = self._launch
        process = subprocess.Popen(
            [*_tie(launch.argv[0]), *launch.argv],
            env={**launch.environment, TOKEN_VARIABLE: self._token},
            cwd=launch.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None  # noqa: S101, PT018
        for pipe in (process.stdin, process.stdout, process.stderr):
            os.set_blocking(pipe.fileno(), False)
        self._selector.register(process.stdout, selectors.EVENT_READ, "stdout")
        self._selector.register(process.stderr, selectors.EVENT_READ, "stderr")
        if launch.stdin:
            self._selector.register(process.stdin, selectors.EVENT_WRITE, _Input(memoryview(launch.stdin)))
        else:
            process.stdin.close()
        return process

    def _turn(self, timeout_s: float) -> bool:
        """Serve the pipes once, and look at the limits; whether there was any output."""
        now = time.monotonic()
        if self._stopping:
            self._break("cancelled", "the host stopped it")
        if now >= self._deadline:
            self._break("timed-out", "its time was spent")
        if now >= self._next_look:
            self._next_look = now + _LOOK_S
            excess = self._excess()
            if excess:
                self._break("transcript-limit", excess)
        if self._kill_at is not None and now >= self._kill_at:
            self._end(signal.SIGKILL)
        if not self._selector.get_map():
            time.sleep(min(timeout_s, 0.01))
            return False
        before = self._read_bytes
        for key, _ in self._selector.select(timeout_s):
            pipe = cast("IO[bytes]", key.fileobj)
            if isinstance(key.data, _Input):
                self._feed(pipe, key.data)
            else:
                self._take(pipe, is_output=key.data == "stdout")
        return self._read_bytes > before

    def _feed(self, pipe: IO[bytes], source: _Input) -> None:
        try:
            source.left = source.left[os.write(pipe.fileno(), source.left[:_CHUNK_BYTES]) :]
        except BlockingIOError:
            return
        except OSError:
            source.left = source.left[:0]
        if not source.left:
            self._drop(pipe)

    def _take(self, pipe: IO[bytes], *, is_output: bool) -> None:
        try:
            chunk = os.read(pipe.fileno(), _CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._drop(pipe)
        elif not is_output:
            self._stderr += chunk
            del self._stderr[:-_STDERR_BYTES]
        elif self._limit is None:
            self._read_bytes += len(chunk)
            *whole, rest = chunk.split(b"\n")
            for part in whole:
                self._lines.append(bytes(self._partial) + part)
                self._partial.clear()
            self._partial += rest
            if self._read_bytes > self._launch.output_limit_bytes:
                self._break("output-limit", f"more than {self._launch.output_limit_bytes} bytes of output")
            elif len(self._partial) > self._launch.line_limit_bytes:
                self._break("output-limit", f"a line of more than {self._launch.line_limit_bytes} bytes")

    def _drop(self, pipe: IO[bytes]) -> None:
        self._selector.unregister(pipe)
        pipe.close()

    def _open(self, name: str) -> bool:
        return any(key.data == name for key in self._selector.get_map().values())

    def _break(self, limit: _Limit, detail: str) -> None:
        """The first limit that is reached stays the reason; the group is asked to end, and made to a little later."""
        if self._limit is not None:
            return
        self._limit, self._detail = limit, detail
        self._partial.clear()
        self._kill_at = time.monotonic() + _GRACE_S
        self._end(signal.SIGTERM)

    def _over(self) -> bool:
        """Whether the process itself has ended; it stays uncollected, so that its group's number stays its own."""
        if self._reaped or self.pid == 0:
            return True
        found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return found is not None

    def _end(self, number: signal.Signals) -> None:
        with self._guard:
            if self._reaped or self.pid == 0:
                return
            # macOS answers EPERM for a group of which only the ended leader is left.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def _conclude(self) -> Exit:
        """Collect the process, end its group and its kin, and say how it ended."""
        self._end(signal.SIGKILL)
        try:
            status: int | None = self._wait_for_end()
        except subprocess.TimeoutExpired:
            status = None
        self._drain()
        clean = status is not None and self._end_kin()
        if clean:
            self._register.ended(self.pid)
        self._exit = self._as_exit(status, clean=clean)
        return self._exit

    def _wait_for_end(self) -> int:
        deadline = time.monotonic() + _END_S
        while not self._over():
            if time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired(self._launch.argv[0], _END_S)
            time.sleep(0.005)
        with self._guard:
            status = self._process.wait()
            self._reaped = True
        return status

    def _drain(self) -> None:
        """Take what standard error still holds; nobody waits for a descendant that keeps a pipe open."""
        for key in list(self._selector.get_map().values()):
            pipe = cast("IO[bytes]", key.fileobj)
            if key.data == "stderr":
                with contextlib.suppress(OSError):
                    self._stderr += os.read(pipe.fileno(), _STDERR_BYTES)
                    del self._stderr[:-_STDERR_BYTES]
            self._drop(pipe)
        self._selector.close()

    def _end_kin(self) -> bool:
        """End descendants that left the group, found by the token; whether none is left."""
        token = f"{TOKEN_VARIABLE}={self._token}"
        return not any(ending.problem for ending in end_survivors(Traces(tokens=(token,)), timeout_s=_END_S))

    def _as_exit(self, status: int | None, *, clean: bool) -> Exit:
        stderr = bytes(self._stderr)
        if self._limit is not None:
            return Exit(kind=self._limit, detail=self._detail, stderr=stderr, clean=clean)
        if status is None:
            return Exit(kind="cancelled", detail="its end could not be established", stderr=stderr, clean=False)
        if status < 0:
            return Exit(kind="signalled", signal=-status, stderr=stderr, clean=clean)
        return Exit(kind="exited", code=status, stderr=stderr, clean=clean)
