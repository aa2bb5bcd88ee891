"""Attempts on other processes, on descriptors and on the terminal."""

from __future__ import annotations

import ctypes
import json
import os
from typing import Any

from firsthand.isolation.battery.inside.child import in_child
from firsthand.isolation.battery.inside.files import CANARY
from firsthand.isolation.battery.inside.kernel import check, libc

_PTRACE_SEIZE = 0x4206


def scan(order: dict[str, Any]) -> str:  # noqa: ARG001 - every attempt is called alike
    """Canaries in the arguments and environments of all processes that can be seen, as JSON."""
    found: set[str] = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            found.update(_canaries(f"/proc/{name}/cmdline"), _canaries(f"/proc/{name}/environ"))
    return json.dumps(sorted(found))


def environment(order: dict[str, Any]) -> str:  # noqa: ARG001 - every attempt is called alike
    """Canaries in the own environment, as JSON."""
    joined = b"\0".join(os.environb.values())
    return json.dumps(sorted({match.decode() for match in CANARY.findall(joined)}))


def descriptors(order: dict[str, Any]) -> str:  # noqa: ARG001 - every attempt is called alike
    """Open descriptors beyond the three streams, and canaries that can be read through them, as JSON."""
    numbers: list[int] = []
    found: set[str] = set()
    for number in range(3, 4096):
        try:
            os.fstat(number)
        except OSError:
            continue
        numbers.append(number)
        try:
            found.update(match.decode() for match in CANARY.findall(os.pread(number, 4096, 0)))
        except OSError:
            continue
    return json.dumps({"numbers": numbers, "canaries": sorted(found)})


def send_signal(order: dict[str, Any]) -> str:
    """Send one signal to the host's process; `stranger` if that number is another process here."""
    who = _who(order["pid"])
    if who == "stranger":
        return who
    os.kill(order["pid"], order["signal"])
    return who


def trace(order: dict[str, Any]) -> str:
    """Attach to the host's process as a debugger, without stopping it; the end of the child lets go of it."""

    def seize() -> str:
        who = _who(order["pid"])
        if who != "stranger":
            check(libc().ptrace(ctypes.c_long(_PTRACE_SEIZE), ctypes.c_long(order["pid"]), None, None))
        return who

    return in_child(seize)


def memory(order: dict[str, Any]) -> str:
    """Open the memory of the host's process for reading."""
    who = _who(order["pid"])
    if who != "stranger":
        os.close(os.open(f"/proc/{order['pid']}/mem", os.O_RDONLY))
    return who


def terminal(order: dict[str, Any]) -> str:
    """Reach a controlling terminal. The control is given one first, to show that it would be reached.

    Says which of the three streams are terminals if there is no other way to one.
    """
    streams = [number for number in range(3) if os.isatty(number)]
    if streams:
        return f"stream {streams[0]}"

    def reach() -> str:
        if order.get("given"):
            _own_terminal()
        os.close(os.open("/dev/tty", os.O_RDWR))
        return "/dev/tty"

    return in_child(reach)


def push_input(order: dict[str, Any]) -> str:  # noqa: ARG001 - every attempt is called alike
    """Push a byte into the input of a terminal (TIOCSTI), one of the command's own for want of a better one."""
    import fcntl  # noqa: PLC0415 - POSIX only
    import termios  # noqa: PLC0415 - POSIX only

    def push() -> str:
        fcntl.ioctl(_own_terminal(), termios.TIOCSTI, b"x")
        return "pushed"

    return in_child(push)


def _own_terminal() -> int:
    import fcntl  # noqa: PLC0415 - POSIX only
    import termios  # noqa: PLC0415 - POSIX only

    os.setsid()
    _, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    return terminal


def _who(pid: int) -> str:
    """Whether that number is the host's process: in a namespace of processes small numbers may coincide."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return "holder" if CANARY.search(file.read(4096)) else "stranger"
    except OSError:
        return "someone"


def _canaries(path: str) -> set[str]:
    try:
        with open(path, "rb") as file:
            return {match.decode() for match in CANARY.findall(file.read(1 << 20))}
    except OSError:
        return set()
