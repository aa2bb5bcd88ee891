"""The watchdog for what no kernel limit covers: the size of the working copy and the memory of all processes together.

It samples, so a burst between two samples passes; the evidence says so (`Available.not_enforced`). A command can hide
files from a look through the folders: in a folder closed to its own user, too deep down, or without a name. So once the
file system has lost more room than the copy may take, anything that is hidden counts as the one that took it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from firsthand.isolation.interface import Limits
from firsthand.records import LimitName

_INTERVAL_S: Final = 0.1
_PAUSE_FACTOR: Final = 5
"""A sample that took t is followed by a pause of at least this many t, so that watching stays a small share."""
_LONGEST_S: Final = 0.5
"""A look through the copy ends after this time; what it has not seen by then counts as hidden, if it saw many entries.
A machine that stalls over a few hides nothing."""
_MANY: Final = 1000
_DEEPEST: Final = 64
"""Folders below one another that are looked into; each holds a descriptor. What lies deeper counts as hidden."""
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


class Watchdog:
    """Samples one running command; made before the command is released.

    Args:
        copy: the working copy.
        guards: process 1 of the namespace first, then the keeper: processes of ours, which nobody may look into.
        limits: `copy_bytes`, `copy_entries` and `memory_bytes` are watched.
    """

    def __init__(self, copy: Path, guards: tuple[int, int], limits: Limits) -> None:
        self._copy = copy
        self._guards = guards
        self._limits = limits
        self._free = os.statvfs(copy)
        self.due_at = time.monotonic() + _INTERVAL_S

    def sample(self) -> LimitName | None:
        """Look once; the name of the first limit found exceeded, or None. Sets the time of the next look."""
        start = time.monotonic()
        exceeded = self._copy_limit(start + _LONGEST_S) or self._memory_limit()
        end = time.monotonic()
        self.due_at = end + max(_INTERVAL_S, _PAUSE_FACTOR * (end - start))
        return exceeded

    def _copy_limit(self, until: float) -> LimitName | None:
        look = _Look(self._copy, self._limits)
        exceeded = look.through(until)
        if exceeded is not None:
            return exceeded
        lost = self._lost()
        return lost if lost is not None and (look.hidden or self._nameless()) else None

    def _lost(self) -> LimitName | None:
        """Which limit on the copy its file system lost more than, by whoever's doing, since the command began."""
        try:
            now = os.statvfs(self._copy)
        except OSError:
            return None
        if self._free.f_bfree * self._free.f_frsize - now.f_bfree * now.f_frsize > self._limits.copy_bytes:
            return "copy-size"
        return "copy-entries" if self._free.f_ffree - now.f_ffree > self._limits.copy_entries else None

    def _nameless(self) -> bool:
        """Whether a process holds files of the copy's file system without a name, or hides what it holds."""
        device = os.stat(self._copy).st_dev
        for pid in self._pids():
            if pid in self._guards:
                continue
            try:
                for descriptor in os.listdir(f"/proc/{pid}/fd"):
                    with contextlib.suppress(FileNotFoundError):
                        status = os.stat(f"/proc/{pid}/fd/{descriptor}")
                        if status.st_dev == device and status.st_nlink == 0:
                            return True
            except PermissionError:
                # An ended process that nobody has collected belongs to root in /proc; it holds nothing any more.
                found = stat_fields(pid)
                if found is not None and found[1][0] not in "ZX":
                    return True
            except OSError:
                continue
        return False

    def _memory_limit(self) -> LimitName | None:
        page = os.sysconf("SC_PAGESIZE")
        total = 0
        for pid in self._pids():
            try:
                # resident minus shared: forked children would count their parent's pages again.
                _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
            except (OSError, ValueError):
                continue
            total += max(0, int(resident) - int(shared)) * page
            if total > self._limits.memory_bytes:
                return "memory"
        return None

    def _pids(self) -> Iterator[int]:
        pids = [self._guards[0]]
        while pids:
            pid = pids.pop()
            yield pid
            pids.extend(children_of(pid))


class _Look:
    """One look through the copy, from folder to folder by descriptors: no link is followed, whatever is swapped."""

    def __init__(self, copy: Path, limits: Limits) -> None:
        self.hidden = False
        self._copy = copy
        self._limits = limits
        self._total = 0
        self._entries = 0
        self._way: list[tuple[int, list[str]]] = []

    def through(self, until: float) -> LimitName | None:
        """The limit found exceeded; sets `hidden` when something could not be looked at in time, or at all."""
        try:
            exceeded = self._enter(os.fspath(self._copy), None)
            while self._way and exceeded is None:
                descriptor, pending = self._way[-1]
                if time.monotonic() > until:
                    self.hidden = self.hidden or self._entries > _MANY
                    return None
                if pending:
                    exceeded = self._enter(pending.pop(), descriptor)
                else:
                    os.close(self._way.pop()[0])
            return exceeded
        finally:
            while self._way:
                os.close(self._way.pop()[0])

    def _enter(self, name: str, parent: int | None) -> LimitName | None:
        if len(self._way) == _DEEPEST:
            self.hidden = True
            return None
        try:
            descriptor = os.open(name, _FOLDER, dir_fd=parent)
            folders: list[str] = []
            self._way.append((descriptor, folders))
            with os.scandir(descriptor) as listing:
                for entry in listing:
                    self._entries += 1
                    if self._entries > self._limits.copy_entries:
                        return "copy-entries"
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
                        continue
                    with contextlib.suppress(FileNotFoundError):
                        # Blocks, not length: a sparse file fills no disk.
                        self._total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if self._total > self._limits.copy_bytes:
                        return "copy-size"
        except (FileNotFoundError, NotADirectoryError):
            # Removed or replaced while we looked: the next sample sees what is there then.
            return None
        except OSError:
            self.hidden = True
        return None


def children_of(pid: int) -> list[int]:
    """Direct children of a process, zombies included; empty when it is gone.

    By the kernel's own list of its threads, or, on kernels built without that, by looking at every process.
    """
    found: list[int] = []
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for task in tasks:
        try:
            found += [int(child) for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
        except FileNotFoundError:
            if not os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children"):
                return _children_by_search(pid)
        except OSError:
            continue
    return found


def _children_by_search(pid: int) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = stat_fields(int(name))
            if fields is not None and int(fields[1][1]) == pid:
                found.append(int(name))
    return found


def stat_fields(pid: int) -> tuple[str, list[str]] | None:
    """Name and the fields after it of /proc/PID/stat (state first), or None when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    # The name may hold blanks and parentheses: it ends at the last one.
    return text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
