"""Attempts to read and write outside of the work area."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from typing import Any

CANARY = re.compile(rb"fhcanary-[0-9a-f]{32}")
"""What the host plants. Found by its shape: an order never carries the canary that it looks for."""

ORDINARY_DEVICES = frozenset({"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"})


def read(order: dict[str, Any]) -> str:
    """Read the beginning of one file; gives the canary in it, or `no canary`."""
    descriptor = os.open(order["path"], os.O_RDONLY | os.O_NONBLOCK)
    try:
        found = CANARY.search(os.read(descriptor, 4096))
    finally:
        os.close(descriptor)
    return found.group().decode() if found else "no canary"


def digest(order: dict[str, Any]) -> str:
    """Part of the SHA-256 of one file's beginning: tells the host's file from another, and nothing of its content."""
    descriptor = os.open(order["path"], os.O_RDONLY | os.O_NONBLOCK)
    try:
        return hashlib.sha256(os.read(descriptor, 4096)).hexdigest()[:16]
    finally:
        os.close(descriptor)


def listing(order: dict[str, Any]) -> str:
    """Names in one folder, at most 1000, as JSON: name to device and inode, or to null where they can't be had."""
    found: dict[str, list[int] | None] = {}
    for name in sorted(os.listdir(order["path"]))[:1000]:
        try:
            entry = os.lstat(os.path.join(order["path"], name))
            found[name] = [entry.st_dev, entry.st_ino]
        except OSError:
            found[name] = None
    return json.dumps(found)


def write(order: dict[str, Any]) -> str:
    """Write to one path, made if it does not exist."""
    return _write(order["path"])


def write_by_symlink(order: dict[str, Any]) -> str:
    """Write through a symbolic link made in the working copy."""
    os.symlink(order["path"], order["link"])
    return _write(order["link"])


def write_by_descriptor(order: dict[str, Any]) -> str:
    """Write to a path that starts at an open folder and climbs out of it."""
    folder = os.open(".", os.O_RDONLY)
    try:
        return _write(f"/dev/fd/{folder}/{order['path']}")
    finally:
        os.close(folder)


def rename_out(order: dict[str, Any]) -> str:
    """Rename a file of the working copy to a path outside."""
    _write(order["own"])
    os.rename(order["own"], order["path"])
    return "renamed"


def rename_in(order: dict[str, Any]) -> str:
    """Rename a file from outside into the working copy."""
    os.rename(order["path"], order["own"])
    return "renamed"


def link_out(order: dict[str, Any]) -> str:
    """Give a file of the working copy a second name outside."""
    _write(order["own"])
    os.link(order["own"], order["path"])
    return "linked"


def link_in(order: dict[str, Any]) -> str:
    """Give a file from outside a second name in the working copy, and write through it."""
    os.link(order["path"], order["own"])
    return _write(order["own"])


def change_mode(order: dict[str, Any]) -> str:
    """Change the permission bits of one path."""
    os.chmod(order["path"], order["mode"])
    return "changed"


def set_id(order: dict[str, Any]) -> str:
    """Give an own file the set-user-id bit; says whether the bit stuck."""
    _write(order["own"])
    os.chmod(order["own"], 0o4755)  # noqa: S103 - whether that works is the question
    return "kept" if os.stat(order["own"]).st_mode & stat.S_ISUID else "dropped"


def unnamed(order: dict[str, Any]) -> str:
    """Make a file without a name in a folder: shows that it is writable and leaves nothing."""
    os.close(os.open(order["path"], os.O_TMPFILE | os.O_WRONLY, 0o600))
    return "made"


def open_to_write(order: dict[str, Any]) -> str:
    """Open a file of the kernel for writing, and write nothing."""
    os.close(os.open(order["path"], os.O_WRONLY))
    return "opened"


def devices(order: dict[str, Any]) -> str:  # noqa: ARG001 - every attempt is called alike
    """Devices beyond the harmless ones that can be seen in /dev, as JSON, at most 50."""
    found = []
    for folder, _, names in os.walk("/dev"):
        for name in names:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and folder == "/dev" and name not in ORDINARY_DEVICES):
                found.append(path)
    return json.dumps(sorted(found)[:50])


def leave(order: dict[str, Any]) -> str:
    """Leave one file in each place."""
    for place in order["places"]:
        _write(os.path.join(os.path.expandvars(place), order["name"]))
    return "left"


def find(order: dict[str, Any]) -> str:
    """Places in which what an earlier command left can be seen, as JSON."""
    return json.dumps(
        [p for p in order["places"] if os.path.lexists(os.path.join(os.path.expandvars(p), order["name"]))]
    )


def _write(path: str) -> str:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        os.write(descriptor, b"written by a probe\n")
    finally:
        os.close(descriptor)
    return "written"
