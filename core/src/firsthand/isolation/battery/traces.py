"""Names of what a battery must put outside its private folder, and the sweep of what a killed one left there.

A canary in a home, in /tmp or in /dev/shm can only be planted there. Its name carries the process that planted it
(pid and start time), so that a later battery can tell a dead one's traces from those of one that is still running.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable

_PREFIX = ".firsthand-battery"
_NAME = re.compile(re.escape(_PREFIX) + r"-(\d+)-(\d+)-[0-9a-f]{16}")


def fresh_name() -> str:
    """A name that says whose trace it is."""
    return f"{_PREFIX}-{os.getpid()}-{_start_time(os.getpid())}-{secrets.token_hex(8)}"


def usual_places() -> tuple[str, ...]:
    """Where a battery leaves traces: temporary files, the home, shared memory; resolved, where they exist."""
    places = ("/tmp", os.path.expanduser("~"), "/dev/shm")  # noqa: S108 - the places themselves are under test
    return tuple(os.path.realpath(place) for place in places if os.path.isdir(place))


def sweep(places: Iterable[str]) -> list[str]:
    """Remove traces of batteries whose process is gone.

    Only this user's own files and folders with such a name go; no link is followed. Gives the paths removed. What
    can't be looked at or removed is left where it is.
    """
    removed = []
    for place in places:
        with contextlib.suppress(OSError):
            for name in os.listdir(place):
                match = _NAME.fullmatch(name)
                if match and not _alive(int(match[1]), int(match[2])):
                    path = os.path.join(place, name)
                    if _remove(path):
                        removed.append(path)
    return removed


def _remove(path: str) -> bool:
    try:
        found = os.lstat(path)
        if found.st_uid != os.geteuid():
            return False
        if stat.S_ISDIR(found.st_mode):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except OSError:
        return False
    return True


def _alive(pid: int, start_time: int) -> bool:
    if start_time:
        return _start_time(pid) == start_time
    # No start time here (no /proc): a recycled pid keeps a trace a little longer, never removes one too early.
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _start_time(pid: int) -> int:
    """Clock ticks after boot at which a process started; 0 if that can't be told."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            # The command's name may hold anything, brackets and blanks included; fields count from its last bracket.
            return int(file.read().rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0
