"""A session's register: one JSON line for each thing, written before the thing exists."""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from firsthand.canonical import JSONValue, StrictJSONError, canonical_bytes, parse_strict
from firsthand.errors import StateError
from firsthand.residues.identity import ProcessIdentity
from firsthand.residues.private import open_private

_LIMIT_BYTES: Final = 64 * 1024 * 1024


class Register:
    """The writing end. Lines are appended whole; nothing is ever overwritten.

    A killed process loses nothing that it wrote, so lines are not synced to the disk: after a power cut there is no
    process left to end, and trees and credentials are found by where they lie.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._torn = False
        self._descriptor = open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def append(self, **entry: JSONValue) -> None:
        """Write one entry.

        Raises:
            StateError: it could not be written; the thing it announces must not be made.
        """
        line = canonical_bytes(entry) + b"\n"
        with self._lock:
            # After a torn line (a full disk), a line end first: the next entry must not be lost with it.
            left = memoryview(b"\n" + line if self._torn else line)
            try:
                while left:
                    left = left[os.write(self._descriptor, left) :]
            except OSError as error:
                self._torn = True
                raise StateError(
                    f"the session's register can't be written: {error.strerror}",
                    where=str(self._path),
                    next_step="free some space for the state directory",
                ) from error
            self._torn = False

    def close(self) -> None:
        """Close the file; nothing can be entered afterwards."""
        with self._lock, contextlib.suppress(OSError):
            os.close(self._descriptor)
            self._descriptor = -1


@dataclass(slots=True)
class Entries:
    """What a register says, read once."""

    trees: list[str] = field(default_factory=list)
    credentials: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    running: list[ProcessIdentity] = field(default_factory=list)
    """Entered as started and not as ended."""
    kept: dict[str, str] = field(default_factory=dict)
    """Reason by path."""


def read_register(path: Path) -> Entries:
    """Read what can be read: a line that a kill tore is skipped, whatever follows it is not.

    Paths are relative to the session's folder. A register that is not there reads as an empty one.
    """
    entries = Entries()
    try:
        with open(path, "rb") as file:
            raw = file.read(_LIMIT_BYTES)
    except FileNotFoundError:
        return entries
    for line in raw.split(b"\n"):
        try:
            entry = parse_strict(line)
        except StrictJSONError:
            continue
        if isinstance(entry, dict):
            _enter(entries, {key: value for key, value in entry.items() if isinstance(value, str)})
    return entries


def _enter(entries: Entries, entry: dict[str, str]) -> None:
    match entry:
        case {"kind": "tree", "path": path}:
            entries.trees.append(path)
        case {"kind": "credential", "path": path}:
            entries.credentials.append(path)
        case {"kind": "process-intent", "token": token}:
            entries.tokens.append(token)
        case {"kind": "process", "pid": pid, "start": start, "boot": boot} if pid.isdecimal():
            entries.running.append(ProcessIdentity(pid=int(pid), start=start, boot=boot))
        case {"kind": "ended", "pid": pid}:
            entries.running = [process for process in entries.running if str(process.pid) != pid]
        case {"kind": "kept", "path": path, "reason": reason}:
            entries.kept[path] = reason
        case _:
            pass  # an entry of a later version: what it names is found by its place
