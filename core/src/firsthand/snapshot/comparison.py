"""Comparing registered files with what they should hold, through descriptors."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from firsthand.canonical import sha256_hex
from firsthand.files import Cursor, FileContent, FileRefusedError, read_leaf, split_path
from firsthand.files.reading import READ_LEAF, read_up_to
from firsthand.records import Manifest, ManifestEntry
from firsthand.snapshot.drift import Difference, DifferenceKind
from firsthand.snapshot.lanes import in_lanes


@dataclass(frozen=True, slots=True)
class Content:
    """What a registered file should hold: digest, size in bytes and permission bits."""

    sha256: str
    size: int
    mode: int

    @classmethod
    def of(cls, data: bytes, mode: int) -> Self:
        """The content that exactly these bytes and this mode make."""
        return cls(sha256=sha256_hex(data), size=len(data), mode=mode)

    @classmethod
    def of_entry(cls, entry: ManifestEntry) -> Self | None:
        """The content that a manifest entry records; None for a missing file."""
        if entry.sha256 is None or entry.size is None or entry.mode is None:
            return None
        return cls(sha256=entry.sha256, size=entry.size, mode=entry.mode)


def contents(manifest: Manifest) -> dict[str, Content | None]:
    """Every registered path, in order, with what it should hold; None where nothing may stand."""
    return {entry.path: Content.of_entry(entry) for entry in manifest.entries}


def compare_copy(root_fd: int, wanted: Mapping[str, Content | None]) -> list[Difference]:
    """Compare every registered file of a copy; the differences, in the order of `wanted`.

    Each file is opened without following a link, must be regular with exactly one name, and is read to at most one
    byte more than it should hold.
    """
    order = sorted(wanted.items())

    def portion(items: Sequence[tuple[str, Content | None]]) -> list[Difference | None]:
        with Cursor(root_fd) as walker:
            return [_compare(walker, path, content) for path, content in items]

    return _in_order(wanted, (found for found in in_lanes(order, portion) if found is not None))


def _in_order(wanted: Mapping[str, Content | None], differences: Iterable[Difference]) -> list[Difference]:
    place = {path: number for number, path in enumerate(wanted)}
    return sorted(differences, key=lambda difference: place[difference.path])


def _compare(walker: Cursor, path: str, content: Content | None) -> Difference | None:
    parts, name = split_path(path)
    try:
        folder_fd = walker.at(parts)
    except FileRefusedError as error:
        # Above a file that is missing, whatever is no folder keeps it missing.
        return Difference(path, "kind", error.reason) if content is not None else None
    if content is None:
        appeared = folder_fd is not None and _stands(folder_fd, name)
        return Difference(path, "appeared") if appeared else None
    if folder_fd is None:
        return Difference(path, "missing")
    try:
        fd = os.open(name, READ_LEAF, dir_fd=folder_fd)
    except FileNotFoundError:
        return Difference(path, "missing")
    except OSError:
        return _unopened(folder_fd, name, path, content)
    try:
        fault = _fault(fd, content)
    finally:
        os.close(fd)
    return None if fault is None else Difference(path, *fault)


def _fault(fd: int, content: Content) -> tuple[DifferenceKind, str] | None:
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        return "kind", "no regular file"
    fault = _outer_fault(stat.S_IMODE(found.st_mode), found.st_size, content)
    if fault is not None:
        return fault
    if found.st_nlink != 1:
        return "links", f"{found.st_nlink} names"
    data = read_up_to(fd, content.size + 1)
    return _outer_fault(content.mode, len(data), content) or _byte_fault(data, content)


def _outer_fault(mode: int, size: int, content: Content) -> tuple[DifferenceKind, str] | None:
    if mode != content.mode:
        return "mode", f"{mode:04o} instead of {content.mode:04o}"
    if size != content.size:
        return "size", f"{size} bytes instead of {content.size}"
    return None


def _byte_fault(data: bytes, content: Content) -> tuple[DifferenceKind, str] | None:
    return None if hashlib.sha256(data).hexdigest() == content.sha256 else ("bytes", "")


def differs(path: str, found: FileContent, content: Content) -> Difference | None:
    """How a file that was read differs from what it should hold; None when it does not."""
    fault = _outer_fault(found.mode, len(found.data), content) or _byte_fault(found.data, content)
    return None if fault is None else Difference(path, *fault)


def _unopened(folder_fd: int, name: bytes, path: str, content: Content) -> Difference:
    """Why a file could not even be opened: no regular file, or a mode that shuts its own owner out."""
    try:
        read_leaf(folder_fd, name, content.size, path)
    except FileRefusedError as error:
        mode = stat.S_IMODE(os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_mode)
        if error.reason == "permission" and mode != content.mode:
            return Difference(path, "mode", f"{mode:04o} instead of {content.mode:04o}")
        return Difference(path, "kind", error.reason)
    return Difference(path, "kind", "changed while it was looked at")


def _stands(folder_fd: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
