"""One look through /proc for the processes of a dead session. Linux only."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firsthand.residues.identity import ENDED_STATES, START, ProcessIdentity, boot_id, stat_fields

_SETTLE_S: Final = 0.05
_SETTLE_STEP_S: Final = 0.001
_PARENT, _GROUP, _SESSION, _FLAGS = 1, 2, 3, 6
_KERNEL_THREAD: Final = 0x0020_0000


@dataclass(frozen=True, slots=True)
class Traces:
    """What a dead session's processes are known by."""

    processes: tuple[ProcessIdentity, ...] = ()
    tokens: tuple[str, ...] = ()
    folder: str = ""
    """The end of its folder's path, unique to it (`/sessions/ID`); empty when no mount can show it."""


def search(traces: Traces, registered: Iterable[ProcessIdentity]) -> list[ProcessIdentity]:
    """Every process that belongs to the session by one of its traces or by descent, as of one look.

    Farthest kin first, and last those that traces show: who ends them in this order can be killed at any moment, and
    what is left is still found, because all that leads to it is left too.

    Args:
        traces: tokens and folder are looked for.
        registered: the registered processes that are known to be alive; they belong.
    """
    tokens = [token.encode() for token in traces.tokens]
    folder = traces.folder.encode()
    boot, own_mounts = boot_id(), _link("/proc/self/ns/mnt")
    # Without this process: neither it nor, through it, what it started is ever a survivor.
    others = (pid for pid in _pids() if pid != os.getpid())
    table = {pid: fields for pid in others if (fields := stat_fields(pid)) is not None}
    belongs = {process.pid for process in registered if process.pid in table}
    for pid, fields in table.items():
        if pid not in belongs and _shows(pid, fields, tokens, folder, own_mounts):
            belongs.add(pid)
    # Those that traces show come first here and last in the answer; each generation of kin is found by the ones before.
    generations = [sorted(belongs)]
    while generations[-1]:
        belongs.update(generations[-1])
        kin = (
            pid
            for pid, fields in table.items()
            if pid not in belongs and not belongs.isdisjoint(int(fields[of]) for of in (_PARENT, _GROUP, _SESSION))
        )
        generations.append(sorted(kin))
    ordered = (pid for generation in reversed(generations) for pid in generation)
    return [ProcessIdentity(pid=pid, start=table[pid][START], boot=boot) for pid in ordered]


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _shows(pid: int, fields: list[str], tokens: list[bytes], folder: bytes, own_mounts: str) -> bool:
    """Whether arguments, environment or mounts tie the process to the session."""
    for task in _tasks(pid, fields[0]):
        if tokens:
            shown = _arguments(task, fields) + _read(f"{task}/environ")
            if any(token in shown for token in tokens):
                return True
        if folder and _link(f"{task}/ns/mnt") not in ("", own_mounts) and _mounts(task, folder):
            return True
    return False


def _tasks(pid: int, state: str) -> Iterator[str]:
    """The process, or, where its first thread has ended and others go on, each of those: the first shows nothing."""
    if state not in ENDED_STATES:
        yield f"/proc/{pid}"
        return
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    yield from (f"/proc/{pid}/task/{task}" for task in tasks if int(task) != pid)


def _arguments(task: str, fields: list[str]) -> bytes:
    """The arguments; a process that is just being replaced by another program has none for a moment, so wait for them.

    The kernel drops the old program, and with it the session's lock (see `Session`), before it shows the new one's
    arguments. Some processes never have any; they cost the whole wait.
    """
    arguments = _read(f"{task}/cmdline")
    if arguments or int(fields[_FLAGS]) & _KERNEL_THREAD:
        return arguments
    deadline = time.monotonic() + _SETTLE_S
    while not arguments and os.path.exists(task) and time.monotonic() < deadline:
        time.sleep(_SETTLE_STEP_S)
        arguments = _read(f"{task}/cmdline")
    return arguments


def _mounts(task: str, folder: bytes) -> bool:
    # The fourth field is the mounted folder's path within its own file system.
    roots = (line.split(b" ")[3] for line in _read(f"{task}/mountinfo").splitlines() if line.count(b" ") > 3)
    return any(root.endswith(folder) or folder + b"/" in root for root in roots)


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
