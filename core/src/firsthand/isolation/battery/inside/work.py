"""What a command must be able to do: a sandbox in which nothing works proves nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import sys
from typing import Any


def files(order: dict[str, Any]) -> str:
    """Write, rename, chmod, read back and unlink in one place, then leave one file if told to."""
    place = os.path.expandvars(order["place"])
    first, second = os.path.join(place, "probe-first"), os.path.join(place, "probe-second")
    with open(first, "wb") as file:
        file.write(b"\x00\xff")
    os.rename(first, second)
    os.chmod(second, 0o640)
    if stat.S_IMODE(os.stat(second).st_mode) != 0o640:
        raise RuntimeError("chmod had no effect")
    with open(second, "rb") as file:
        if file.read() != b"\x00\xff":
            raise RuntimeError("read back other bytes")
    os.unlink(second)
    if order.get("leave"):
        with open(os.path.join(place, order["leave"]), "w", encoding="ascii") as file:
            file.write(order["text"])
    return "worked"


def grandchild(order: dict[str, Any]) -> str:  # noqa: ARG001 - every attempt is called alike
    """A shell starts a shell that prints a word."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(send, 1)
        os.execv("/bin/sh", ["/bin/sh", "-c", "/bin/sh -c 'echo grandchild' | cat"])  # noqa: S606 - no shell is meant to guard here
    os.close(send)
    word = os.read(receive, 64).decode().strip()
    os.close(receive)
    _, status = os.waitpid(child, 0)
    return f"{word} {os.waitstatus_to_exitcode(status)}"


def kill_child(order: dict[str, Any]) -> str:  # noqa: ARG001 - every attempt is called alike
    """End an own child by signal."""
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return str(os.waitstatus_to_exitcode(status))


def fresh_program(order: dict[str, Any]) -> str:
    """Copy a program to TMPDIR and run it there."""
    path = os.path.join(os.environ["TMPDIR"], f"fresh-program-{os.getpid()}")
    shutil.copyfile(order["program"], path)
    os.chmod(path, 0o700)
    child = os.fork()
    if child == 0:
        try:
            os.execv(path, [path])  # noqa: S606 - no shell is meant to guard here
        finally:
            os._exit(126)
    _, status = os.waitpid(child, 0)
    os.unlink(path)
    return str(os.waitstatus_to_exitcode(status))


def loopback(order: dict[str, Any]) -> str:  # noqa: ARG001 - every attempt is called alike
    """A server and a client of the command's own, over 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname(), timeout=1) as client:
            client.sendall(b"x")
        connection, _ = server.accept()
        with connection:
            return f"got {connection.recv(1).decode()}"


def environment(order: dict[str, Any]) -> str:  # noqa: ARG001 - every attempt is called alike
    """The whole environment, as JSON; inside only, never as a control."""
    return json.dumps(dict(os.environ))


def streams(order: dict[str, Any]) -> str:  # noqa: ARG001 - every attempt is called alike
    """Read standard input to its end, use the null device and the random one."""
    if os.read(0, 1) != b"":
        raise RuntimeError("standard input is not at its end")
    with open(os.devnull, "r+b", buffering=0) as null:
        null.write(b"x")
        if null.read(1) != b"":
            raise RuntimeError("the null device gave a byte")
    with open("/dev/urandom", "rb", buffering=0) as source:
        if len(source.read(8)) != 8:
            raise RuntimeError("no random bytes")
    return "worked"


def whereabouts(order: dict[str, Any]) -> str:
    """Current folder, and what the marked file says there and at the source's own path, as JSON."""
    seen = {"cwd": os.getcwd(), "argv0": sys.executable}
    for key in ("here", "there"):
        try:
            with open(order[key], encoding="ascii") as file:
                seen[key] = file.read(200).strip()
        except OSError as error:
            seen[key] = f"error {error.errno}"
    return json.dumps(seen)
