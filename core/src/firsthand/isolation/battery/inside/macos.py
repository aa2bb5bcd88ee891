"""Attempts on what macOS alone has: its process table, Mach services, second names of files, programs of the system.

Numbers and layouts are from the system's public headers; a call that another system does not know is a broken probe,
never a refusal.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
import subprocess
from typing import Any

from firsthand.isolation.battery.inside.files import CANARY
from firsthand.isolation.battery.inside.kernel import check, libc

_CTL_KERN = 1
_KERN_PROC, _KERN_PROC_ALL = 14, 0
_KERN_PROCARGS2 = 49
_PROCESS_RECORD_BYTES = 648
"""struct kinfo_proc; the process id stands at byte 40 of it."""
_PROCESS_ID_AT = 40
_BSD_INFO, _BSD_INFO_BYTES = 3, 136
_ALL_PIDS = 1
_UNKNOWN_SERVICE = 1102
_LARGEST_BYTES = 4 << 20
_PATIENCE_S = 5.0


def arguments(order: dict[str, Any]) -> str:
    """Canaries in another process's arguments and environment (KERN_PROCARGS2), as JSON."""
    raw = _sysctl(_CTL_KERN, _KERN_PROCARGS2, order["pid"])
    return json.dumps(sorted({match.decode() for match in CANARY.findall(raw)}))


def table(order: dict[str, Any]) -> str:
    """Look for another process in the kernel's table of all processes (KERN_PROC_ALL)."""
    raw = _sysctl(_CTL_KERN, _KERN_PROC, _KERN_PROC_ALL, 0)
    records = range(0, len(raw) - _PROCESS_RECORD_BYTES + 1, _PROCESS_RECORD_BYTES)
    pids = {int.from_bytes(raw[at + _PROCESS_ID_AT : at + _PROCESS_ID_AT + 4], "little") for at in records}
    return "found" if order["pid"] in pids else f"not among {len(pids)}"


def information(order: dict[str, Any]) -> str:
    """Ask for another process's state (proc_pidinfo)."""
    record = ctypes.create_string_buffer(_BSD_INFO_BYTES)
    pid, size = ctypes.c_int(order["pid"]), ctypes.c_int(_BSD_INFO_BYTES)
    ctypes.set_errno(0)
    if libc().proc_pidinfo(pid, ctypes.c_int(_BSD_INFO), ctypes.c_uint64(0), record, size) != _BSD_INFO_BYTES:
        check(-1)
    return "told"


def list_pids(order: dict[str, Any]) -> str:
    """Look for another process in libproc's list of all."""
    pids = (ctypes.c_int32 * 65536)()
    ctypes.set_errno(0)
    size = libc().proc_listpids(ctypes.c_uint32(_ALL_PIDS), ctypes.c_uint32(0), pids, ctypes.c_int(ctypes.sizeof(pids)))
    if size <= 0:
        check(-1)
    return "found" if order["pid"] in pids[: size // 4] else "not found"


def task(order: dict[str, Any]) -> str:
    """Ask Mach for a port of another process, by the call of that name."""
    port = ctypes.c_uint32(0)
    own = ctypes.c_uint32.in_dll(libc(), "mach_task_self_")
    answer = libc()[order["ask"]](own, ctypes.c_int(order["pid"]), ctypes.byref(port))
    if answer != 0:
        raise OSError(errno.EPERM, f"Mach said {answer}")
    return "port"


def look_up(order: dict[str, Any]) -> str:
    """Look up one Mach service."""
    port = ctypes.c_uint32(0)
    bootstrap = ctypes.c_uint32.in_dll(libc(), "bootstrap_port")
    answer = libc().bootstrap_look_up(bootstrap, ctypes.c_char_p(order["service"].encode()), ctypes.byref(port))
    if answer != 0:
        code = errno.ENOENT if answer == _UNKNOWN_SERVICE else errno.EPERM
        raise OSError(code, f"bootstrap said {answer}")
    return "port"


def program(order: dict[str, Any]) -> str:
    """Run one program of the system; gives how much it printed, never what: it may be the user's own.

    A program that fails, prints fewer `lines`, or prints nothing of what it is to `find`, counts as ENODATA.
    """
    done = subprocess.run(
        order["argv"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE_S, check=False
    )
    if done.returncode != 0 or len(done.stdout.splitlines()) < order["lines"]:
        raise OSError(errno.ENODATA, f"ended with {done.returncode}, printed {len(done.stdout)} bytes")
    if "find" in order and order["find"].encode() not in done.stdout.split():
        raise OSError(errno.ENODATA, "not in what it printed")
    return f"printed {len(done.stdout)} bytes"


def new_terminal(order: dict[str, Any]) -> str:  # noqa: ARG001 - every attempt is called alike
    """Make a pair of pseudo-terminals."""
    for descriptor in os.openpty():
        os.close(descriptor)
    return "made"


def listen(order: dict[str, Any]) -> str:  # noqa: ARG001 - every attempt is called alike
    """Listen on a free port of 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
    return "listening"


def resolver(order: dict[str, Any]) -> str:
    """Connect to the system's resolver, and ask it nothing."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(_PATIENCE_S)
        caller.connect(order["path"])
    return "connected"


def clone_in(order: dict[str, Any]) -> str:
    """Clone a file from outside into the working copy and read it there; gives the canary in it."""
    check(libc().clonefile(os.fsencode(order["path"]), os.fsencode(order["own"]), ctypes.c_uint32(0)))
    with open(order["own"], "rb") as file:
        found = CANARY.search(file.read(4096))
    return found.group().decode() if found else "no canary"


def clone_out(order: dict[str, Any]) -> str:
    """Clone a file of the working copy to a path outside."""
    with open(order["own"], "wb") as file:
        file.write(b"x")
    check(libc().clonefile(os.fsencode(order["own"]), os.fsencode(order["path"]), ctypes.c_uint32(0)))
    return "cloned"


def kernel_value(order: dict[str, Any]) -> str:
    """Read one number of the kernel's by name."""
    number, size = ctypes.c_int32(0), ctypes.c_size_t(4)
    name = ctypes.c_char_p(order["name"].encode())
    check(libc().sysctlbyname(name, ctypes.byref(number), ctypes.byref(size), None, ctypes.c_size_t(0)))
    return str(number.value)


def _sysctl(*numbers: int) -> bytes:
    name = (ctypes.c_int * len(numbers))(*numbers)
    buffer, size = ctypes.create_string_buffer(_LARGEST_BYTES), ctypes.c_size_t(_LARGEST_BYTES)
    length = ctypes.c_uint(len(numbers))
    check(libc().sysctl(name, length, buffer, ctypes.byref(size), None, ctypes.c_size_t(0)))
    return buffer.raw[: size.value]
