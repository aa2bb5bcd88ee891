"""Attempts on the kernel's own doors: system calls that a check has no use for."""

from __future__ import annotations

import ctypes
import json
import os
import signal
from typing import Any

from firsthand.isolation.battery.inside.child import in_child

_GENERIC = {"clone": 220, "add_key": 217, "keyctl": 219, "bpf": 280, "perf_event_open": 241}
_X86_64 = {"clone": 56, "add_key": 248, "keyctl": 250, "bpf": 321, "perf_event_open": 298}
_EVERYWHERE = {"io_uring_setup": 425, "open_tree": 428, "fsopen": 430, "clone3": 435}
_NUMBERS = {"x86_64": _X86_64, "aarch64": _GENERIC, "riscv64": _GENERIC, "loongarch64": _GENERIC}

NAMESPACES = {
    "mount": 0x00020000,
    "cgroup": 0x02000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
_PR_GET_NO_NEW_PRIVS = 39
_PROCESS_KEYRING = -2
_IPC_CREAT_EXCL = 0o3000
_IPC_RMID = 0
_MNT_DETACH = 2


def libc() -> ctypes.PyDLL:
    """The C library, called with the interpreter's lock held: a clone must not come back to a lock it lost."""
    return ctypes.PyDLL(None, use_errno=True)


def check(result: int) -> int:
    """Turn a C library's -1 into the error it stands for."""
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def unshare(order: dict[str, Any]) -> str:
    """Enter new namespaces of the named kinds, in a child."""
    flags = 0
    for kind in order["kinds"]:
        flags |= NAMESPACES[kind]

    def enter() -> str:
        check(libc().unshare(flags))
        return "entered"

    return in_child(enter)


def clone(order: dict[str, Any]) -> str:
    """Start a child in a new user namespace, by clone or clone3."""
    if order["way"] == "clone3":
        arguments = (ctypes.c_uint64 * 8)(NAMESPACES["user"], 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
        child = _syscall("clone3", ctypes.byref(arguments), ctypes.sizeof(arguments))
    else:
        child = _syscall("clone", NAMESPACES["user"] | signal.SIGCHLD, None, None, None, None)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "entered"


def mount(order: dict[str, Any]) -> str:
    """Mount a new file system on an own folder, and take it off again. Never made as a control."""
    os.makedirs(order["own"], exist_ok=True)

    def attach() -> str:
        check(libc().mount(b"none", order["own"].encode(), b"tmpfs", 0, None))
        check(libc().umount2(order["own"].encode(), _MNT_DETACH))
        return "mounted"

    return in_child(attach)


def mount_api(order: dict[str, Any]) -> str:
    """Open a new file system, or a copy of a mount, without attaching it anywhere."""
    if order["way"] == "fsopen":
        os.close(_syscall("fsopen", b"tmpfs", 0))
    else:
        os.close(_syscall("open_tree", -100, b"/", 1))
    return "opened"


def io_uring(order: dict[str, Any]) -> str:  # noqa: ARG001 - every attempt is called alike
    """Set up a ring."""
    os.close(_syscall("io_uring_setup", 1, (ctypes.c_uint8 * 120)()))
    return "set up"


def keys(order: dict[str, Any]) -> str:
    """Use the kernel's keyrings: a key in the own process's keyring, which ends with the process."""

    def use() -> str:
        if order["way"] == "add_key":
            _syscall("add_key", b"user", b"firsthand-probe", b"x", 1, _PROCESS_KEYRING)
        else:
            _syscall("keyctl", 0, _PROCESS_KEYRING, 1, 0, 0)
        return "used"

    return in_child(use)


def bpf(order: dict[str, Any]) -> str:  # noqa: ARG001 - every attempt is called alike
    """Make a map for programs in the kernel."""
    attributes = (ctypes.c_uint32 * 32)(2, 4, 4, 1)
    os.close(_syscall("bpf", 0, ctypes.byref(attributes), ctypes.sizeof(attributes)))
    return "made"


def perf(order: dict[str, Any]) -> str:  # noqa: ARG001 - every attempt is called alike
    """Open a counter on the own process, user side only."""
    attributes = (ctypes.c_uint64 * 16)(1 | (128 << 32), 1, 0, 0, 0, (1 << 5) | (1 << 6))
    os.close(_syscall("perf_event_open", ctypes.byref(attributes), 0, -1, -1, 0))
    return "opened"


def no_new_privileges(order: dict[str, Any]) -> str:  # noqa: ARG001 - every attempt is called alike
    """Whether the kernel still lets this process gain privileges by executing a program."""
    return "can't gain" if check(libc().prctl(_PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)) == 1 else "can gain"


def gain(order: dict[str, Any]) -> str:
    """Run a set-user-id program of root's that prints its effective user id, as an ordinary user."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if order.get("become"):
                os.setgroups([])
                os.setgid(order["become"])
                os.setuid(order["become"])
            os.dup2(send, 1)
            os.execv(order["program"], [order["program"], "-u"])  # noqa: S606 - no shell is meant to guard here
        except OSError as error:
            os.write(send, f"errno {error.errno}".encode())
        finally:
            os._exit(126)
    os.close(send)
    said = os.read(receive, 64).decode().strip()
    os.close(receive)
    os.waitpid(child, 0)
    if said.startswith("errno "):
        code = int(said.split()[1])
        raise OSError(code, os.strerror(code))
    return f"uid {said}"


def capabilities(order: dict[str, Any]) -> str:  # noqa: ARG001 - every attempt is called alike
    """Capability sets that hold anything, as JSON."""
    held = {}
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name in {"CapInh", "CapPrm", "CapEff", "CapAmb"} and int(value, 16):
                held[name] = value.strip()
    return json.dumps(held)


def shared_segment(order: dict[str, Any]) -> str:
    """Make a System V shared memory segment; the control removes it again at once and says whether it was listed."""
    library = libc()
    identity = check(library.shmget(order["key"], 4096, _IPC_CREAT_EXCL | 0o600))
    if not order.get("remove"):
        return "made"
    try:
        with open("/proc/sysvipc/shm", encoding="ascii") as file:
            listed = any(line.split()[0] == str(order["key"]) for line in file)
    finally:
        check(library.shmctl(identity, _IPC_RMID, None))
    return "listed" if listed else "not listed"


def _syscall(name: str, *arguments: Any) -> int:  # noqa: ANN401 - whatever C takes
    machine = os.uname().machine
    numbers = {**_NUMBERS[machine], **_EVERYWHERE}
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    function = libc().syscall
    function.restype = ctypes.c_long
    return check(function(ctypes.c_long(numbers[name]), *wide))
