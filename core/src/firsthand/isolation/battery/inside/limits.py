"""Commands that use too much, stay too long or leave something running."""

from __future__ import annotations

import mmap
import os
import signal
import time
from typing import Any

_LONGEST_LIFE_S = 20
"""However leaky the sandbox, nothing of this lives longer."""


def daemon(order: dict[str, Any]) -> str:
    """Leave a process in a session of its own, with all streams closed, that holds a lock on a file of the copy."""
    lock = _take_lock(order["lock"])
    receive, send = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        _outlive(lock, send, order)
    os.close(lock)
    os.close(send)
    return "left" if os.read(receive, 1) == b"r" else "not left"


def stubborn(order: dict[str, Any]) -> str:
    """Ignore every signal that can be ignored, leave a stubborn daemon, and never end."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    daemon(order)
    signal.alarm(_LONGEST_LIFE_S)
    while True:
        signal.pause()


def storm(order: dict[str, Any]) -> str:
    """Fork until refused or until the ordered number; each child adds a byte to a file, so that the host can count."""
    _take_lock(order["lock"])
    counter = os.open(order["counter"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for _ in range(order["number"]):
        if os.fork() == 0:
            os.write(counter, b".")
            signal.alarm(_LONGEST_LIFE_S)
            signal.pause()
            os._exit(0)
    return "all started"


def memory(order: dict[str, Any]) -> str:
    """Take and touch memory step by step; each step adds a byte to a file, so that the host can count."""
    counter = os.open(order["counter"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    blocks = []
    for _ in range(order["steps"]):
        block = mmap.mmap(-1, order["step_bytes"], flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block[:: mmap.PAGESIZE] = b"x" * (order["step_bytes"] // mmap.PAGESIZE)
        blocks.append(block)
        os.write(counter, b".")
    return "all taken"


def large_file(order: dict[str, Any]) -> str:
    """Write one byte beyond the largest file that is allowed."""
    descriptor = os.open(order["own"], os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.pwrite(descriptor, b"x", order["limit_bytes"])
    finally:
        os.close(descriptor)
    return "written"


def fill(order: dict[str, Any]) -> str:
    """Fill one place with files, each within the limit for one file; then remove them, or wait to be stopped."""
    place = os.path.expandvars(order["place"])
    paths = [os.path.join(place, f"fill-{number}") for number in range(order["files"])]
    try:
        for path in paths:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                _allocate(descriptor, order["file_bytes"])
            finally:
                os.close(descriptor)
        if order.get("wait"):
            time.sleep(_LONGEST_LIFE_S)
    finally:
        for path in paths:
            if os.path.exists(path):
                os.unlink(path)
    return "filled"


def flood(order: dict[str, Any]) -> str:
    """Print without end to one stream."""
    signal.alarm(_LONGEST_LIFE_S)
    block = b"flood\n" * 10000
    while True:
        os.write(order["stream"], block)


def _allocate(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    for _ in range(size // 65536):
        os.write(descriptor, b"x" * 65536)


def _take_lock(path: str) -> int:
    import fcntl  # noqa: PLC0415 - POSIX only

    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _outlive(lock: int, send: int, order: dict[str, Any]) -> None:
    """Hold the lock until the file is gone, the process that must live is gone, or the longest life is over."""
    signal.alarm(_LONGEST_LIFE_S)
    for stream in range(3):
        os.close(stream)
    os.write(lock, f"{order['nonce']} {os.getpid()}\n".encode())
    os.write(send, b"r")
    os.close(send)
    while os.path.exists(order["lock"]) and _lives(order.get("while_lives", 0)):
        time.sleep(0.05)
    os._exit(0)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
