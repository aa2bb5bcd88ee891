"""macOS's own answers, through libSystem and kqueue. Imported everywhere, of use on macOS only."""

from __future__ import annotations

import ctypes
import os
import select
import signal
from collections.abc import Iterator
from typing import Any, Final

_SYSTEM_LIBRARY: Final = "/usr/lib/libSystem.B.dylib"
# Kinds of proc_listpids, from <sys/proc_info.h>.
_BY_GROUP: Final = 2
_BY_REAL_UID: Final = 5
_PID_BYTES: Final = 4
_PIDS_LIMIT: Final = 65_536
# proc_pidinfo's short BSD record, from <sys/proc_info.h>: the fourth 32-bit number is the process's status.
_SHORT_INFO: Final = 13
_SHORT_INFO_BYTES: Final = 64
_STATUS_AT: Final = 3
_ZOMBIE: Final = 5


class DarwinExitWatch:
    """kqueue's NOTE_EXIT, which leaves the child uncollected."""

    def __init__(self, pid: int) -> None:
        # kqueue is named through getattr because type checkers on other systems don't know it.
        kqueue: Any = vars(select)["kqueue"]
        names = vars(select)
        self._queue = kqueue()
        self._ended = False
        try:
            event = names["kevent"](
                pid,
                filter=names["KQ_FILTER_PROC"],
                flags=names["KQ_EV_ADD"],
                fflags=names["KQ_NOTE_EXIT"],
            )
            self._queue.control([event], 0)
        except ProcessLookupError:
            # It ended before it could be watched; it is our child, so it is a zombie.
            self._ended = True

    def fileno(self) -> int:
        """See `ExitWatch.fileno`."""
        return int(self._queue.fileno())

    def ended(self) -> bool:
        """See `ExitWatch.ended`."""
        self._ended = self._ended or bool(self._queue.control(None, 1, 0))
        return self._ended

    def close(self) -> None:
        """See `ExitWatch.close`."""
        self._queue.close()


class Darwin:
    """The running macOS; see `firsthand_seatbelt.kernel.Kernel`."""

    def watch_exit(self, pid: int) -> DarwinExitWatch:
        """See `Kernel.watch_exit`."""
        return DarwinExitWatch(pid)

    def group(self, group_id: int) -> tuple[int, ...] | None:
        """See `Kernel.group`."""
        pids = _list_pids(_BY_GROUP, group_id)
        return None if pids is None else tuple(pid for pid in pids if not _is_zombie(pid))

    def processes_of(self, uid: int) -> int | None:
        """See `Kernel.processes_of`."""
        pids = _list_pids(_BY_REAL_UID, uid)
        return None if pids is None else len(pids)

    def kill_group(self, group_id: int) -> None:
        """See `Kernel.kill_group`."""
        os.killpg(group_id, signal.SIGKILL)


def inside_a_sandbox() -> bool:
    """Whether this very process is confined by Seatbelt already; a second profile can't be applied then."""
    check = _library().sandbox_check
    check.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
    check.restype = ctypes.c_int
    return bool(check(os.getpid(), None, 0))


def loaded_images() -> Iterator[str]:
    """Paths of the program and of the libraries that are loaded into this process, as the dynamic loader names them."""
    library = _library()
    count = library["_dyld_image_count"]
    count.restype = ctypes.c_uint32
    name = library["_dyld_get_image_name"]
    name.argtypes = [ctypes.c_uint32]
    name.restype = ctypes.c_char_p
    for index in range(count()):
        path = name(index)
        if path:
            yield os.fsdecode(path)


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(_SYSTEM_LIBRARY, use_errno=True)


def _list_pids(kind: int, number: int) -> tuple[int, ...] | None:
    buffer = (ctypes.c_int32 * _PIDS_LIMIT)()
    ctypes.set_errno(0)  # an empty answer and an error differ only in errno
    size = _library().proc_listpids(
        ctypes.c_uint32(kind), ctypes.c_uint32(number), ctypes.byref(buffer), ctypes.c_int(ctypes.sizeof(buffer))
    )
    if size < 0 or (size == 0 and ctypes.get_errno() != 0):
        return None
    return tuple(pid for pid in buffer[: size // _PID_BYTES] if pid > 0)


def _is_zombie(pid: int) -> bool:
    """Whether a process has ended and waits to be collected; one that can't be asked counts as alive."""
    record = (ctypes.c_uint32 * (_SHORT_INFO_BYTES // 4))()
    size = _library().proc_pidinfo(
        ctypes.c_int(pid),
        ctypes.c_int(_SHORT_INFO),
        ctypes.c_uint64(1),  # 1: zombies are found too
        ctypes.byref(record),
        ctypes.c_int(ctypes.sizeof(record)),
    )
    return size == _SHORT_INFO_BYTES and record[_STATUS_AT] == _ZOMBIE
