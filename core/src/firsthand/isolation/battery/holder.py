"""A process of the host's that attacks aim at: it holds canaries and notes every signal that reaches it."""

from __future__ import annotations

import os
import select
import subprocess
import time
from typing import IO, Self, cast

from firsthand.isolation.battery.interpreter import Interpreter

# It ends when its standard input does, so that it can't outlive the battery, not even one that is killed. Being traced
# is allowed to everyone (where the kernel asks), so that a refusal inside is the sandbox's and not the kernel's.
_PROGRAM = """
import os, signal
for number, note in ((signal.SIGUSR1, b"u"), (signal.SIGTERM, b"t")):
    signal.signal(number, lambda *_, note=note: os.write(1, note))
try:
    import ctypes
    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)
except Exception:
    pass
os.write(1, b"r")
while os.read(0, 1):
    os.write(1, b"p")
"""

_PATIENCE_S = 10.0


class Holder:
    """One process; a context manager that ends it."""

    def __init__(self, interpreter: Interpreter, argument: str, environment: str) -> None:
        """Start it with one canary as its argument and one in its environment."""
        self._process = subprocess.Popen(
            [*interpreter.command, "-c", _PROGRAM, argument],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"HELD": environment},
            start_new_session=True,
        )
        # Both are there: they were asked for.
        self._stdin = cast("IO[bytes]", self._process.stdin)
        self._stdout = cast("IO[bytes]", self._process.stdout)
        self._notes = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._stdin.close()
        self._stdout.close()

    @property
    def pid(self) -> int:
        """Its process id on the host."""
        return self._process.pid

    def wait_ready(self) -> bool:
        """Whether it is up and notes signals."""
        return self._read_until(b"r")

    def was_hit(self, note: str) -> bool:
        """Whether a signal reached it: `u` for SIGUSR1, `t` for SIGTERM; being dead counts as either.

        It is asked for an echo, twice, first: signals that were pending are noted by then.
        """
        for _ in range(2):
            echoes = self._notes.count(b"p")
            if not self._ask() or not self._read_until(b"p", more_than=echoes):
                return True
        return note.encode() in self._notes

    def _ask(self) -> bool:
        try:
            os.write(self._stdin.fileno(), b"?")
        except BrokenPipeError:
            return False
        return True

    def _read_until(self, note: bytes, *, more_than: int = 0) -> bool:
        descriptor = self._stdout.fileno()
        deadline = time.monotonic() + _PATIENCE_S
        while self._notes.count(note) <= more_than:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            block = os.read(descriptor, 4096) if ready else b""
            if not block:
                return False
            self._notes += block
        return True
