"""The watchdog over the size of the folders that a command writes to: macOS has no limit of its own for that.

It looks from time to time, so a burst between two looks passes; what a command hides in folders that it made
unreadable is not seen. Both are told in `Available.not_enforced`.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from firsthand.records import LimitName

_INTERVAL_S: Final = 0.2
_SLICE_S: Final = 0.005
"""Longest single look: reading the command's output must not wait for a walk over 100,000 files."""
_PAUSE_FACTOR: Final = 5
"""After a walk that took t comes a pause of at least this many t."""
_FOLDER: Final = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True)
class Watched:
    """A folder and what may be in it; None for no bound."""

    folder: str
    limit_bytes: int
    limit_entries: int | None = None


class Watchdog:
    """Walks the watched folders again and again, a little at a time.

    Attributes:
        due_at: monotonic time of the next look.
    """

    def __init__(self, watched: Sequence[Watched]) -> None:
        self._watched = tuple(watched)
        self._walk: Iterator[LimitName | None] | None = None
        self._spent_s = 0.0
        self.due_at = time.monotonic() + _INTERVAL_S

    def look(self) -> LimitName | None:
        """Walk for a moment; the limit found exceeded, or None. Sets `due_at`."""
        begun = time.monotonic()
        if self._walk is None:
            self._walk = _walk_all(self._watched)
            self._spent_s = 0.0
        for found in self._walk:
            if found is not None:
                return found
            now = time.monotonic()
            if now - begun > _SLICE_S:
                self._spent_s += now - begun
                self.due_at = now
                return None
        now = time.monotonic()
        self._spent_s += now - begun
        self._walk = None
        self.due_at = now + max(_INTERVAL_S, _PAUSE_FACTOR * self._spent_s)
        return None


def _walk_all(watched: Sequence[Watched]) -> Iterator[LimitName | None]:
    for one in watched:
        total = 0
        for entries, size in enumerate(_sizes(one.folder), start=1):
            total += size
            if total > one.limit_bytes:
                yield "copy-size"
            elif one.limit_entries is not None and entries > one.limit_entries:
                yield "copy-entries"
            else:
                yield None


def _sizes(root: str) -> Iterator[int]:
    """Bytes on disk of each entry below a folder, at any depth, through no link and with one open descriptor.

    Going up again means opening `..`, so the folder found there must be the one that was left; when a command moves
    folders about meanwhile, the walk ends and the next one starts afresh.
    """
    try:
        here = os.open(root, os.O_RDONLY | _FOLDER)
    except OSError:
        return
    above: list[tuple[tuple[int, int], list[str]]] = []
    try:
        pending: list[str] = []
        yield from _list(here, pending)
        while True:
            if pending:
                entered = _enter(here, pending.pop())
                if entered is None:
                    continue
                above.append((_identity(here), pending))
                os.close(here)
                here, pending = entered, []
                yield from _list(here, pending)
            elif above:
                identity, pending = above.pop()
                parent = _enter(here, "..")
                if parent is None:
                    return
                os.close(here)
                here = parent
                if _identity(here) != identity:
                    return
            else:
                return
    finally:
        os.close(here)


def _list(folder: int, subfolders: list[str]) -> Iterator[int]:
    try:
        with os.scandir(folder) as listing:
            for entry in listing:
                try:
                    info = entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # It vanished while we looked.
                if stat.S_ISDIR(info.st_mode):
                    subfolders.append(entry.name)
                # Blocks, not length: a sparse file fills no disk.
                yield info.st_blocks * 512
    except OSError:
        return


def _enter(folder: int, name: str) -> int | None:
    try:
        return os.open(name, os.O_RDONLY | _FOLDER, dir_fd=folder)
    except OSError:
        return None


def _identity(folder: int) -> tuple[int, int]:
    info = os.fstat(folder)
    return info.st_dev, info.st_ino
