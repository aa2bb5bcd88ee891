"""Breaking off the command that a cancelled call started: the host kills it, and its working copy is discarded."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Final

from firsthand.checks import Ground
from firsthand.isolation.interface import (
    Availability,
    Backend,
    Enclosure,
    Limits,
    ProcessWatch,
    Request,
    Result,
    Workspace,
)

_KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)


class CallCancelledError(Exception):
    """The call that a command ran for was cancelled; the command was killed and is not recorded as a run."""


class Interrupt:
    """Kills what a backend has started for the command that runs right now. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: dict[int, int] = {}
        self._running = False
        self._set = False

    @property
    def is_set(self) -> bool:
        """Whether the present call is cancelled."""
        return self._set

    def clear(self) -> None:
        """A new call begins."""
        with self._lock:
            self._set = False

    def set(self) -> None:
        """Cancel: kill the running command, and let no other one start for this call. Rewrites are let to end."""
        with self._lock:
            self._set = True
            if self._running:
                for pid, descriptor in self._processes.items():
                    _kill(pid, descriptor)

    @contextmanager
    def command(self) -> Iterator[None]:
        """Around one command.

        Raises:
            CallCancelledError: the call was cancelled before it began.
        """
        with self._lock:
            if self._set:
                raise CallCancelledError
            self._running = True
        try:
            yield
        finally:
            with self._lock:
                self._running = False

    def started(self, pid: int) -> None:
        """A backend's process exists; held by a descriptor where there is one, so that no other is ever signalled."""
        descriptor = -1
        with contextlib.suppress(AttributeError, OSError):
            descriptor = os.pidfd_open(pid)
        with self._lock:
            self._processes[pid] = descriptor
            if self._set and self._running:
                _kill(pid, descriptor)

    def ended(self, pid: int) -> None:
        """It is proved gone."""
        with self._lock:
            descriptor = self._processes.pop(pid, -1)
            if descriptor >= 0:
                os.close(descriptor)

    def close(self) -> None:
        """Give back what is held of processes whose end was never established."""
        with self._lock:
            for descriptor in self._processes.values():
                if descriptor >= 0:
                    os.close(descriptor)
            self._processes.clear()


def _kill(pid: int, descriptor: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if descriptor >= 0:
            signal.pidfd_send_signal(descriptor, _KILL)
        elif hasattr(os, "killpg") and os.getpgid(pid) == pid:
            os.killpg(pid, _KILL)
        else:
            os.kill(pid, _KILL)


def interruptible(ground: Ground, interrupt: Interrupt) -> Ground:
    """The same ground, on which the running command can be broken off."""
    watch = _Watch(ground.processes, interrupt)
    return replace(ground, backend=_Backend(ground.backend, interrupt), processes=watch)


class _Watch:
    def __init__(self, inner: ProcessWatch, interrupt: Interrupt) -> None:
        self._inner = inner
        self._interrupt = interrupt

    def started(self, pid: int) -> None:
        self._inner.started(pid)
        self._interrupt.started(pid)

    def ended(self, pid: int) -> None:
        self._interrupt.ended(pid)
        self._inner.ended(pid)


class _Backend:
    def __init__(self, inner: Backend, interrupt: Interrupt) -> None:
        self.name = inner.name
        self._inner = inner
        self._interrupt = interrupt

    def availability(self) -> Availability:
        return self._inner.availability()

    def enclose(
        self, workspace: Workspace, limits: Limits, processes: ProcessWatch
    ) -> AbstractContextManager[Enclosure]:
        return self._enclose(workspace, limits, processes)

    @contextmanager
    def _enclose(self, workspace: Workspace, limits: Limits, processes: ProcessWatch) -> Iterator[Enclosure]:
        with self._inner.enclose(workspace, limits, processes) as enclosure:
            yield _Enclosure(enclosure, self._interrupt)


class _Enclosure:
    def __init__(self, inner: Enclosure, interrupt: Interrupt) -> None:
        self._inner = inner
        self._interrupt = interrupt

    def run(self, request: Request) -> Result:
        with self._interrupt.command():
            result = self._inner.run(request)
        # An end that is not established goes its own way: it ends the session, cancelled or not.
        if self._interrupt.is_set and result.outcome.cleanup != "unknown":
            raise CallCancelledError
        return result

    def rewrite(self, path: str, data: bytes, mode: int) -> None:
        self._inner.rewrite(path, data, mode)
