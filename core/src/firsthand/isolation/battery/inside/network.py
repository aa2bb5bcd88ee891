"""Attempts to reach the host's listeners."""

from __future__ import annotations

import socket
from typing import Any

_PATIENCE_S = 1.0
_VSOCK_PATIENCE_S = 0.1
"""Without a local transport a connection is neither made nor refused."""


def tcp(order: dict[str, Any]) -> str:
    """Connect to a live listener and hand it a tag."""
    return _connect(_family(order), (order["host"], order["port"]), order["tag"])


def udp(order: dict[str, Any]) -> str:
    """Send two datagrams: the second one brings the refusal that the first one met."""
    with socket.socket(_family(order), socket.SOCK_DGRAM) as sender:
        sender.settimeout(_PATIENCE_S)
        sender.connect((order["host"], order["port"]))
        sender.send(order["tag"].encode())
        sender.send(order["tag"].encode())
    return "sent"


def unix(order: dict[str, Any]) -> str:
    """Connect to a unix socket by path, or by abstract name (which starts with a NUL)."""
    return _connect(socket.AF_UNIX, order["address"], order["tag"])


def vsock(order: dict[str, Any]) -> str:
    """Make a vsock socket and connect to the host's listener through it.

    Says `made` where the socket could be made but the connection was refused: on a machine without a local vsock
    transport the socket is all that can be had, inside and outside alike.
    """
    with socket.socket(getattr(socket, "AF_VSOCK", 40), socket.SOCK_STREAM) as caller:
        caller.settimeout(_VSOCK_PATIENCE_S)
        try:
            caller.connect((order["cid"], order["port"]))
            caller.sendall(order["tag"].encode())
        except OSError:
            return "made"
    return "connected"


def _family(order: dict[str, Any]) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in order["host"] else socket.AF_INET


def _connect(family: socket.AddressFamily, address: Any, tag: str) -> str:  # noqa: ANN401 - as the socket module has it
    with socket.socket(family, socket.SOCK_STREAM) as caller:
        caller.settimeout(_PATIENCE_S)
        caller.connect(address)
        caller.sendall(tag.encode())
    return "connected"
