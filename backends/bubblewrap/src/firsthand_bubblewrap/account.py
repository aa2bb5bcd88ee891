"""The account that commands run as when the host is root: a uid with no passwd entry and no process."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

# Above the ranges that distributions, systemd and subordinate-id tools hand out, below the numbers that programs
# mistake for negative ones.
_FIRST: Final = 0x7000_0000
_LAST: Final = 0x7FFF_0000
_TRIES: Final = 64


class NoFreeAccountError(RuntimeError):
    """No unused uid could be found: the user namespace maps none, or all tries were taken."""


def unused_uid() -> int:
    """A random uid that nobody uses now.

    Raises:
        NoFreeAccountError: see there.
    """
    import pwd  # noqa: PLC0415 # POSIX only

    first, last = _usable_range()
    taken = _uids_of_processes()
    for _ in range(_TRIES):
        uid = first + secrets.randbelow(last - first + 1)
        if uid in taken:
            continue
        try:
            pwd.getpwuid(uid)
        except KeyError:
            return uid
    raise NoFreeAccountError("no unused uid found")


def _usable_range() -> tuple[int, int]:
    """Where to look: the usual range, or the upper half of what a surrounding user namespace maps."""
    spans = []
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        inside, _, length = (int(number) for number in line.split())
        spans.append((inside, inside + length - 1))
    for inside, end in spans:
        if inside <= _FIRST and end >= _LAST:
            return _FIRST, _LAST
    start, end = max(spans, key=lambda span: span[1] - span[0])
    if end - start < 1000:
        raise NoFreeAccountError("this user namespace maps too few uids to find an unused one")
    return (start + end) // 2, end


def _uids_of_processes() -> set[int]:
    taken = set()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                taken.add(entry.stat().st_uid)
            except OSError:
                continue
    return taken
