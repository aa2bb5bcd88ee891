"""Negative probes: nothing outside can be called, judged by what the host's listeners received."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from firsthand.isolation.battery.judge import stopped
from firsthand.isolation.battery.probe import Attempt, Line, Probe, Side, everywhere, on_linux
from firsthand.isolation.battery.stage import Stage

_REFUSED = frozenset(
    {
        "ECONNREFUSED",
        "ENETUNREACH",
        "ENETDOWN",
        "EHOSTUNREACH",
        "EADDRNOTAVAIL",
        "EAFNOSUPPORT",
        "EPERM",
        "EACCES",
        "ENOSYS",
    }
)
_UNIX_REFUSED = _REFUSED | {"ENOENT", "ENOTDIR"}
_VSOCK_REFUSED = _REFUSED | {"EPROTONOSUPPORT", "ENODEV"}


def _caller(name: str, call: str, *, refused: frozenset[str] = _REFUSED, word_counts: bool = True) -> Attempt:
    """An attempt on one listener.

    `word_counts`: whether the inside's own word for success counts too. Not for datagrams: sending one without an
    error means nothing if it did not arrive.
    """

    def detail(stage: Stage, side: Side) -> Mapping[str, Any] | None:
        address = stage.listeners.addresses.get(name)
        if address is None:
            return None
        if isinstance(address, str):
            return {"address": address, "tag": stage.tag(side, name)}
        key = "cid" if name == "vsock" else "host"
        return {key: address[0], "port": address[1], "tag": stage.tag(side, name)}

    def reached(stage: Stage, side: Side, line: Line) -> bool:
        return stage.listeners.saw(name, stage.tag(side, name)) or (word_counts and bool(line.get("did")))

    unoffered = frozenset({"EAFNOSUPPORT", "EADDRNOTAVAIL", "EPERM", "EACCES", "ENODEV"})
    return Attempt(name, call, detail, reached, refused, unoffered)


_TCP4, _TCP6 = _caller("tcp4", "network.tcp"), _caller("tcp6", "network.tcp")
_UDP4 = _caller("udp4", "network.udp", word_counts=False)
_UDP6 = _caller("udp6", "network.udp", word_counts=False)
_PATHNAME = _caller("pathname", "network.unix", refused=_UNIX_REFUSED)
_ABSTRACT = _caller("abstract", "network.unix", refused=_UNIX_REFUSED)
_VSOCK = _caller("vsock", "network.vsock", refused=_VSOCK_REFUSED)

PROBES = (
    Probe(
        "tcp-ipv4",
        "Is a live TCP listener on 127.0.0.1 out of reach?",
        everywhere("must"),
        lambda bench: stopped(bench, (_TCP4,)),
        (_TCP4,),
    ),
    Probe(
        "tcp-ipv6",
        "Is a live TCP listener on ::1 out of reach?",
        everywhere("where-offered"),
        lambda bench: stopped(bench, (_TCP6,)),
        (_TCP6,),
    ),
    Probe(
        "udp",
        "Does no datagram reach a live socket on 127.0.0.1 or ::1?",
        everywhere("must"),
        lambda bench: stopped(bench, (_UDP4, _UDP6)),
        (_UDP4, _UDP6),
    ),
    Probe(
        "unix-pathname",
        "Is a live unix socket outside out of reach by its path?",
        everywhere("must"),
        lambda bench: stopped(bench, (_PATHNAME,)),
        (_PATHNAME,),
    ),
    Probe(
        "unix-abstract",
        "Is a live unix socket out of reach by its abstract name?",
        on_linux("must"),
        lambda bench: stopped(bench, (_ABSTRACT,)),
        (_ABSTRACT,),
    ),
    Probe(
        "vsock",
        "Can no socket to the hypervisor be had?",
        on_linux("where-offered"),
        lambda bench: stopped(bench, (_VSOCK,)),
        (_VSOCK,),
    ),
)
