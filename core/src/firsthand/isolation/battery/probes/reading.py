"""Negative probes: nothing outside can be read or listed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from firsthand.isolation.battery.inside import files
from firsthand.isolation.battery.judge import stopped
from firsthand.isolation.battery.probe import Attempt, Line, Probe, Side, Weight, everywhere, on_linux
from firsthand.isolation.battery.stage import Stage

_HOST_FILES = ("/etc/shadow", "/etc/machine-id", "/etc/ssh/ssh_host_ed25519_key", "/etc/sudoers")
_HOST_FOLDERS = ("/home", "/root", "/var/log", "/var/lib", "/srv", "/mnt", "/run", "/boot")


def _canary(name: str) -> Attempt:
    def detail(stage: Stage, side: Side) -> Mapping[str, Any] | None:  # noqa: ARG001 - a callback
        path = stage.canaries.get(name)
        return None if path is None else {"path": path}

    def reached(stage: Stage, side: Side, line: Line) -> bool:  # noqa: ARG001 - a callback
        return line.get("saw") == stage.tokens.get(name, "")

    return Attempt(f"canary-{name}", "files.read", detail, reached)


def _host_file(path: str) -> Attempt:
    """Read a file of the host's. A sandbox may have one of its own at that place: the bytes must be the host's."""

    def reached(stage: Stage, side: Side, line: Line) -> bool:  # noqa: ARG001 - a callback
        if not line.get("did"):
            return False
        try:
            return line.get("saw") == files.digest({"path": path})
        except OSError:
            return False

    return Attempt(
        f"read {path}",
        "files.digest",
        lambda *_: {"path": path},
        reached,
        unoffered=frozenset({"ENOENT", "EACCES", "EPERM"}),
    )


def _listing(word: str, path: str) -> Attempt:
    """List a folder; counts as reached if any name of the host's shows that leads to nothing granted."""

    def place(stage: Stage) -> str:
        return {"parent": str(stage.source.parent), "home": os.path.expanduser("~")}.get(path, path)

    def detail(stage: Stage, side: Side) -> Mapping[str, Any] | None:  # noqa: ARG001 - a callback
        folder = place(stage)
        if not os.path.isabs(folder) or os.path.realpath(folder) == "/":
            return None
        try:
            names = os.listdir(folder)
        except OSError:
            return None
        return {"path": folder} if stage.foreign(folder, dict.fromkeys(names)) else None

    def reached(stage: Stage, side: Side, line: Line) -> bool:  # noqa: ARG001 - a callback
        return bool(line.get("did")) and bool(stage.foreign(place(stage), json.loads(line["saw"])))

    return Attempt(f"list {word}", "files.listing", detail, reached)


def _devices_here(stage: Stage, side: Side) -> Mapping[str, Any] | None:  # noqa: ARG001 - a callback
    return None if files.devices({}) == "[]" else {}


def _any_listed(stage: Stage, side: Side, line: Line) -> bool:  # noqa: ARG001 - a callback
    return bool(line.get("did")) and line.get("saw") != "[]"


def _one(probe: str, question: str, attempt: Attempt, weight: Weight) -> Probe:
    return Probe(probe, question, everywhere(weight), lambda bench: stopped(bench, (attempt,)), (attempt,))


_READ = tuple(map(_host_file, _HOST_FILES))
_LISTED = tuple(_listing(path, path) for path in _HOST_FOLDERS)
_SHARED_MEMORY = _canary("shared-memory")
_DEVICES = Attempt("devices", "files.devices", _devices_here, _any_listed)

PROBES = (
    _one("read-home", "Is a canary in the real home unreadable?", _canary("home"), "where-offered"),
    _one("list-home", "Is the real home's content out of sight?", _listing("home", "home"), "where-offered"),
    _one("read-sibling", "Is a canary in a folder beside the source unreadable?", _canary("sibling"), "must"),
    _one("read-beside-copy", "Is a canary beside the copy unreadable?", _canary("beside-the-copy"), "must"),
    _one("read-tmp", "Is a canary in /tmp unreadable?", _canary("tmp"), "must"),
    _one("read-source", "Is a file of the source that the copy lacks unreadable?", _canary("only-in-source"), "must"),
    _one("list-parent", "Is what lies beside the source out of sight?", _listing("parent", "parent"), "must"),
    Probe(
        "read-shared-memory",
        "Is a canary in the host's shared memory unreadable?",
        on_linux("where-offered"),
        lambda bench: stopped(bench, (_SHARED_MEMORY,)),
        (_SHARED_MEMORY,),
    ),
    Probe(
        "host-files",
        "Are the host's own files, password hashes among them, unreadable?",
        everywhere("where-offered"),
        lambda bench: stopped(bench, _READ),
        _READ,
    ),
    Probe(
        "host-folders",
        "Is the content of the host's own folders out of sight?",
        everywhere("where-offered"),
        lambda bench: stopped(bench, _LISTED),
        _LISTED,
    ),
    Probe(
        "devices",
        "Are disks and other devices of the host out of sight?",
        on_linux("where-offered"),
        lambda bench: stopped(bench, (_DEVICES,)),
        (_DEVICES,),
    ),
)
