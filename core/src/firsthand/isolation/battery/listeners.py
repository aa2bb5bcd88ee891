"""The host's live listeners: an attack on the network is judged by what arrives here.

No thread serves them. The kernel completes a connection and keeps what was sent until the judge looks, so that what
a listener has seen is read after the run, in full.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from typing import Self

_VMADDR_CID_LOCAL = 1
_VMADDR_CID_HOST = 2
_VMADDR_ANY = 0xFFFFFFFF


class Listeners:
    """Sockets on this machine's loopback, by path, by abstract name and by vsock; whatever of them can be had here.

    Attributes:
        addresses: name of the listener to where it listens: (host, port), a path, an abstract name, (cid, port).
    """

    def __init__(self, folder: str) -> None:
        """Listen; `folder` is where the pathname socket goes, searchable by everyone."""
        self.addresses: dict[str, tuple[str, int] | tuple[int, int] | str] = {}
        self._streams: dict[str, socket.socket] = {}
        self._datagrams: dict[str, socket.socket] = {}
        self._seen: dict[str, set[str]] = {}
        for name, host in (("tcp4", "127.0.0.1"), ("tcp6", "::1")):
            self._listen_inet(name, host)
        for name, host in (("udp4", "127.0.0.1"), ("udp6", "::1")):
            self._receive_inet(name, host)
        self._listen_unix("pathname", os.path.join(folder, "socket"))
        # An abstract name has no permission bits: on Linux only a network namespace or a filter keeps callers away.
        self._listen_unix("abstract", "\0firsthand-" + secrets.token_hex(16))
        self._listen_vsock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for listener in (*self._streams.values(), *self._datagrams.values()):
            listener.close()

    def saw(self, name: str, tag: str) -> bool:
        """Whether that listener has received that tag by now."""
        seen = self._seen.setdefault(name, set())
        if name in self._streams:
            seen.update(_accepted(self._streams[name]))
        elif name in self._datagrams:
            seen.update(_received(self._datagrams[name]))
        return tag in seen

    def _listen_inet(self, name: str, host: str) -> None:
        with contextlib.suppress(OSError):
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._streams[name] = listener = socket.create_server((host, 0), family=family, backlog=8)
            listener.settimeout(0)
            self.addresses[name] = (host, listener.getsockname()[1])

    def _receive_inet(self, name: str, host: str) -> None:
        with contextlib.suppress(OSError):
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            receiver = socket.socket(family, socket.SOCK_DGRAM)
            self._datagrams[name] = receiver
            receiver.bind((host, 0))
            receiver.settimeout(0)
            self.addresses[name] = (host, receiver.getsockname()[1])

    def _listen_unix(self, name: str, address: str) -> None:
        with contextlib.suppress(OSError):
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._streams[name] = listener
            listener.bind(address)
            listener.listen(8)
            listener.settimeout(0)
            if not address.startswith("\0"):
                # Whoever is confined runs under another user here and there; permission must not be what stops it.
                os.chmod(address, 0o777)  # noqa: S103 - as said
            self.addresses[name] = address

    def _listen_vsock(self) -> None:
        family = getattr(socket, "AF_VSOCK", None)
        if family is None:
            return
        # Where there is no local transport the address still names what to try.
        self.addresses["vsock"] = (_VMADDR_CID_HOST, 1)
        with contextlib.suppress(OSError):
            listener = socket.socket(family, socket.SOCK_STREAM)
            self._streams["vsock"] = listener
            listener.bind((_VMADDR_ANY, _VMADDR_ANY))
            listener.listen(8)
            listener.settimeout(0)
            self.addresses["vsock"] = (_VMADDR_CID_LOCAL, listener.getsockname()[1])


def _accepted(listener: socket.socket) -> set[str]:
    tags = set()
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(1.0)
                with contextlib.suppress(OSError):
                    tags.add(connection.recv(256).decode("ascii", "replace"))
    return tags


def _received(receiver: socket.socket) -> set[str]:
    tags = set()
    with contextlib.suppress(OSError):
        while True:
            tags.add(receiver.recv(256).decode("ascii", "replace"))
    return tags
