"""The manifest: what was frozen, file by file."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from firsthand.records.base import Count, Digest, Mode, Record


class ManifestEntry(Record):
    """One registered file as it was read."""

    path: str
    """Relative POSIX path as registered."""
    state: Literal["present", "missing"]
    """`missing` only for true absence (ENOENT)."""
    mode: Mode | None
    """Permission bits; null when missing."""
    size: Count | None
    """Bytes; null when missing."""
    links: Count | None
    """Hard links of the source's inode; the copies are always fresh inodes. Null when missing."""
    sha256: Digest | None
    """Digest of the exact bytes; null when missing."""

    @model_validator(mode="after")
    def _state_agrees_with_fields(self) -> Self:
        values = (self.mode, self.size, self.links, self.sha256)
        present = self.state == "present"
        if any((value is not None) != present for value in values):
            raise ValueError("mode, size, links and sha256 stand exactly when the file is present")
        return self


class Manifest(Record):
    """All registered files, in the definition's order.

    Its digest (`canonical_digest`) binds the order and every field.
    """

    entries: tuple[ManifestEntry, ...]

    def entry(self, path: str) -> ManifestEntry | None:
        """The entry of one registered path, or None when the path is not registered."""
        return next((entry for entry in self.entries if entry.path == path), None)
