"""Which process a pid means: pid, start time and boot, so that a recycled pid is told apart."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC_PIDTBSDINFO: Final = 3
_BSDINFO_BYTES: Final = 136
_BSDINFO_START: Final = 120
ENDED_STATES: Final = "ZXx"
"""Of /proc/PID/stat: a process, or the first of its threads, that has ended."""

START: Final = 19
"""Index of the start time among the fields of `stat_fields`."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process, never another."""

    pid: int
    start: str
    """When it started, in the platform's own unit: clock ticks since boot on Linux, microseconds since 1970 on
    macOS, 100 ns since 1601 on Windows."""
    boot: str
    """Which boot of the machine; empty where the platform does not tell (the start time is absolute there)."""


def identify(pid: int) -> ProcessIdentity | None:
    """Who has this pid now, or None: nobody, or the platform does not say.

    An ended process that its parent has not collected still has its pid, and is identified.
    """
    start = _start(pid)
    return None if start is None else ProcessIdentity(pid=pid, start=start, boot=boot_id())


def boot_id() -> str:
    """A name of this boot of the machine; empty where there is none."""
    name = ""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            name = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    elif sys.platform == "darwin":
        name = _sysctl_text(b"kern.bootsessionuuid")
    return name


def _start(pid: int) -> str | None:
    start: str | None = None
    if pid <= 0:
        return start
    if sys.platform == "linux":
        fields = stat_fields(pid)
        start = None if fields is None else fields[START]
    elif sys.platform == "darwin":
        start = _start_on_macos(pid)
    elif sys.platform == "win32":
        start = _start_on_windows(pid)
    return start


def stat_fields(pid: int) -> list[str] | None:
    """What /proc/PID/stat says after the name, the state first; None when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name may hold blanks, parentheses and line ends: it ends at the last parenthesis.
    return text.rpartition(b")")[2].decode("ascii").split()


def is_over(pid: int) -> bool:
    """Whether the process has ended, collected or not. Linux only; threads may outlive the one that this asks about."""
    fields = stat_fields(pid)
    return fields is None or fields[0] in ENDED_STATES


def _start_on_macos(pid: int) -> str | None:
    library = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(_BSDINFO_BYTES)
    filled = library.proc_pidinfo(
        ctypes.c_int(pid), ctypes.c_int(_PROC_PIDTBSDINFO), ctypes.c_uint64(0), buffer, ctypes.c_int(_BSDINFO_BYTES)
    )
    if filled != _BSDINFO_BYTES:
        return None
    seconds = int.from_bytes(buffer.raw[_BSDINFO_START : _BSDINFO_START + 8], sys.byteorder)
    micros = int.from_bytes(buffer.raw[_BSDINFO_START + 8 : _BSDINFO_START + 16], sys.byteorder)
    return str(seconds * 1_000_000 + micros)


def _sysctl_text(name: bytes) -> str:
    library = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(256)
    size = ctypes.c_size_t(len(buffer))
    if library.sysctlbyname(name, buffer, ctypes.byref(size), None, ctypes.c_size_t(0)) != 0:
        return ""
    return buffer.value.decode("ascii", "replace")


def _start_on_windows(pid: int) -> str | None:
    start: str | None = None
    if sys.platform == "win32":
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel.OpenProcess.restype = ctypes.c_void_p
        handle = kernel.OpenProcess(0x1000, False, pid)  # noqa: FBT003 - PROCESS_QUERY_LIMITED_INFORMATION
        if handle:
            times = [ctypes.c_uint64() for _ in range(4)]
            if kernel.GetProcessTimes(ctypes.c_void_p(handle), *(ctypes.byref(time) for time in times)):
                start = str(times[0].value)
            kernel.CloseHandle(ctypes.c_void_p(handle))
    return start


def own_identity() -> ProcessIdentity:
    """This process; its start is empty where the platform does not say."""
    return identify(os.getpid()) or ProcessIdentity(pid=os.getpid(), start="", boot=boot_id())
