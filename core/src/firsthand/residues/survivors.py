"""Finding and ending the processes that a dead session left, without ever signalling somebody else's.

On Linux a process belongs to a session by its registered identity, by the session's token in its arguments or
environment, by a mount of the session's own folder in a mount namespace other than ours, or by descent: its parent, its
group's leader or its session's leader belongs. Elsewhere only the first is to be had.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from firsthand.residues.identity import ProcessIdentity, identify, is_over
from firsthand.residues.search import Traces, search

_POLL_S: Final = 0.02
_LOOKS: Final = 5


@dataclass(frozen=True, slots=True)
class Ending:
    """What became of one survivor."""

    process: ProcessIdentity
    problem: str
    """Empty when it has ended."""


def find_survivors(traces: Traces) -> list[ProcessIdentity]:
    """The processes of a dead session that still run, this one never among them. No side effects."""
    registered = [process for process in traces.processes if is_alive(process) and process.pid != os.getpid()]
    found = registered
    if sys.platform == "linux":
        for _ in range(_LOOKS):
            found = search(traces, registered)
            # A process that ended during the look may have lent its number to a stranger's family: look again.
            if all(is_alive(process) for process in found):
                break
            registered = [process for process in registered if is_alive(process)]
            found = [process for process in found if is_alive(process)]
    return found


def end_survivors(traces: Traces, *, timeout_s: float) -> list[Ending]:
    """Stop and then kill what `find_survivors` finds, until nothing is found or the time is up.

    A survivor may start others while it is being ended. So all are stopped first, and the search is repeated until it
    shows no new one (a process with a signal pending can't fork); then all are killed and waited for; and only an
    empty search proves the end. Each signal goes through a descriptor of exactly the process that was identified
    (pidfd, Linux 5.3 and newer), so a pid that changes hands is never signalled.

    Returns:
        one entry for each process, ended or not.
    """
    deadline = time.monotonic() + timeout_s
    endings: dict[ProcessIdentity, Ending] = {}
    while True:
        survivors = _stop_all(traces, deadline)
        if not survivors:
            break
        problems = _kill_all(survivors, deadline)
        endings.update({process: Ending(process, problems.get(process, "")) for process in survivors})
        if problems and (len(problems) == len(survivors) or time.monotonic() >= deadline):
            break
    return list(endings.values())


def _stop_all(traces: Traces, deadline: float) -> list[ProcessIdentity]:
    stopped: set[ProcessIdentity] = set()
    while True:
        found = find_survivors(traces)
        new = [process for process in found if process not in stopped]
        stopped.update(new)
        if sys.platform == "linux":
            for process in new:
                with _handle(process) as handle, contextlib.suppress(ProcessLookupError, PermissionError):
                    if handle is not None:
                        handle.send(signal.SIGSTOP)
        # In the order of the last search: that order makes it safe to be killed between two kills.
        if not new or time.monotonic() >= deadline:
            return found


def _kill_all(survivors: Iterable[ProcessIdentity], deadline: float) -> dict[ProcessIdentity, str]:
    """Kill and wait; the problem of each that did not end."""
    problems: dict[ProcessIdentity, str] = {}
    with contextlib.ExitStack() as stack:
        waiting: list[Handle] = []
        for process in survivors:
            handle = stack.enter_context(_handle(process))
            if handle is None:
                continue
            try:
                handle.send(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
            except ProcessLookupError:
                continue
            except PermissionError:
                problems[process] = "this user may not end it"
                continue
            waiting.append(handle)
        for handle in waiting:
            if not handle.wait(deadline):
                problems[handle.process] = "it was killed and has not ended yet"
    return problems


@dataclass(frozen=True, slots=True)
class Handle:
    """A hold on one process."""

    process: ProcessIdentity
    pidfd: int | None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to this very process.

        Raises:
            ProcessLookupError: it is gone.
            PermissionError: this user may not signal it.
        """
        if self.pidfd is not None:
            signal.pidfd_send_signal(self.pidfd, number)
        elif not is_alive(self.process):
            raise ProcessLookupError
        elif os.name == "posix" and os.getpgid(self.process.pid) == self.process.pid:
            # Where nothing else shows its kin, the group that it leads goes with it.
            os.killpg(self.process.pid, number)
        else:
            os.kill(self.process.pid, number)

    def wait(self, deadline: float) -> bool:
        """Wait for its end, until a moment of the monotonic clock; whether it has ended."""
        if self.pidfd is not None:
            return _ended(self.pidfd, max(0.0, deadline - time.monotonic()))
        while is_alive(self.process):
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        return True


@contextlib.contextmanager
def _handle(process: ProcessIdentity) -> Iterator[Handle | None]:
    """Take hold of a process; None when it is gone or another has its pid."""
    pidfd: int | None = None
    try:
        pidfd = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None
    except ProcessLookupError:
        yield None
        return
    except OSError:
        pidfd = None  # a kernel without pidfd, or one that forbids it
    try:
        # Identified after the descriptor was opened: it can't move to another process any more.
        yield Handle(process, pidfd) if identify(process.pid) == process else None
    finally:
        if pidfd is not None:
            os.close(pidfd)


def is_alive(process: ProcessIdentity) -> bool:
    """Whether this very process still runs, in any of its threads."""
    with _handle(process) as handle:
        if handle is None:
            return False
        if handle.pidfd is not None:
            return not _ended(handle.pidfd, 0.0)
    return sys.platform != "linux" or not is_over(process.pid)


def _ended(pidfd: int, timeout_s: float) -> bool:
    # poll, not select: the descriptor's number may be large.
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(timeout_s * 1000))
