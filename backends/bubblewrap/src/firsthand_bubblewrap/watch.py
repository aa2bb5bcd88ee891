"""The watchdog for what no kernel limit covers: the size of the working copy and the memory of all processes together.

It samples, so a burst between two samples passes; the evidence says so (`Available.not_enforced`).
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

from firsthand.isolation.interface import Limits
from firsthand.records import LimitName

_INTERVAL_S: Final = 0.1
_PAUSE_FACTOR: Final = 5
"""A sample that took t is followed by a pause of at least this many t, so that watching stays a small share."""


class Watchdog:
    """Samples one running command."""

    def __init__(self, copy: Path, init_pid: int, limits: Limits) -> None:
        self._copy = copy
        self._init_pid = init_pid
        self._limits = limits
        self.due_at = time.monotonic() + _INTERVAL_S

    def sample(self) -> LimitName | None:
        """Look once; the name of the first limit found exceeded, or None. Sets the time of the next look."""
        start = time.monotonic()
        exceeded = self._copy_limit() or self._memory_limit()
        end = time.monotonic()
        self.due_at = end + max(_INTERVAL_S, _PAUSE_FACTOR * (end - start))
        return exceeded

    def _copy_limit(self) -> LimitName | None:
        total = entries = 0
        folders = [os.fspath(self._copy)]
        while folders:
            try:
                with os.scandir(folders.pop()) as listing:
                    for entry in listing:
                        entries += 1
                        if entries > self._limits.copy_entries:
                            return "copy-entries"
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.path)
                        else:
                            # Blocks, not length: a sparse file fills no disk.
                            total += entry.stat(follow_symlinks=False).st_blocks * 512
                            if total > self._limits.copy_bytes:
                                return "copy-size"
            except OSError:
                # Vanished or locked against us while we looked: the next sample sees what is left.
                continue
        return None

    def _memory_limit(self) -> LimitName | None:
        page = os.sysconf("SC_PAGESIZE")
        total = 0
        pids = [self._init_pid]
        while pids:
            pid = pids.pop()
            try:
                # resident minus shared: forked children would count their parent's pages again.
                _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
            except (OSError, ValueError):
                continue
            total += max(0, int(resident) - int(shared)) * page
            if total > self._limits.memory_bytes:
                return "memory"
            pids.extend(children_of(pid))
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
