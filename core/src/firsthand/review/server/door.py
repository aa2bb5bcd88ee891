"""The door: who may connect. A private socket, a token, the peer's user, and only the first."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import struct
import sys
from pathlib import Path
from typing import Final

from firsthand.errors import StateError
from firsthand.residues.private import open_private
from firsthand.review.relay import ACCEPTED, SOCKET, TOKEN

_TOKEN_TIMEOUT_S: Final = 5.0
_BACKLOG: Final = 8
_SUN_PATH_BYTES: Final = 100
_LOCAL_PEERCRED: Final = 1


def open_door(folder: Path) -> tuple[socket.socket, str]:
    """Make the token's file and the listening socket, both 0600, in a private folder of ours.

    Returns:
        the socket, listening, and the token.

    Raises:
        StateError: one of them can't be made.
    """
    token = secrets.token_hex(32)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        descriptor = open_private(folder / TOKEN, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            os.write(descriptor, token.encode())
        finally:
            os.close(descriptor)
        _bind(listener, folder)
        os.chmod(folder / SOCKET, 0o600)
        listener.listen(_BACKLOG)
        listener.setblocking(False)  # noqa: FBT003 - the standard library's own signature
    except OSError as error:
        listener.close()
        raise StateError(
            f"the tool server's socket can't be made: {error.strerror or error}",
            where=str(folder),
            next_step="free some space, or choose a state directory with a shorter path with --state",
        ) from error
    return listener, token


def _bind(listener: socket.socket, folder: Path) -> None:
    place = os.fspath(folder / SOCKET)
    if len(os.fsencode(place)) <= _SUN_PATH_BYTES or sys.platform != "linux":
        listener.bind(place)
        return
    # An address holds about a hundred bytes; through the folder's descriptor any depth can be named.
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{descriptor}/{SOCKET}")
    finally:
        os.close(descriptor)


async def admit(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str, *, taken: bool, uid: int
) -> bool:
    """Whether a connection may be served: nobody was before it, its peer is this user, and it knows the token.

    Args:
        reader: of the connection.
        writer: of the connection; nothing is written.
        token: what it must send first, as one line.
        taken: whether another connection was admitted already.
        uid: the user that the peer must be.
    """
    connection = writer.get_extra_info("socket")
    if taken or peer_uid(connection) != uid:
        return False
    given = b""
    with contextlib.suppress(TimeoutError, OSError, ValueError):
        given = await asyncio.wait_for(reader.readline(), _TOKEN_TIMEOUT_S)
    return secrets.compare_digest(given.strip(), token.encode())


async def welcome(writer: asyncio.StreamWriter) -> None:
    """Tell an admitted connection that it is."""
    writer.write(ACCEPTED)
    with contextlib.suppress(OSError):
        await writer.drain()


def peer_uid(connection: socket.socket) -> int | None:
    """The user at the other end, as the kernel says; None where it does not say."""
    # Linux: struct ucred, the user behind the pid. Elsewhere: struct xucred, the user behind a version.
    level, option, form = (
        (socket.SOL_SOCKET, getattr(socket, "SO_PEERCRED", 0), "3i")
        if sys.platform == "linux"
        else (0, _LOCAL_PEERCRED, "2I")
    )
    try:
        return int(struct.unpack(form, connection.getsockopt(level, option, struct.calcsize(form)))[1])
    except (OSError, AttributeError, struct.error):
        return None
