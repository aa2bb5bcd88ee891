"""The package: the documents that a reviewer judges the work by."""

from __future__ import annotations

from firsthand.definition import Document
from firsthand.records import Manifest


def package_digest(manifest: Manifest, document: Document) -> str | None:
    """Digest over the manifest entries of the package's documents, requirements first, in the definition's order.

    Returns:
        The digest, or None where the definition names no document.

    Raises:
        KeyError: the manifest has no entry for a document.
    """
    entries = {entry.path: entry for entry in manifest.entries}
    paths = (*document.package.requirements, *document.package.instructions)
    return Manifest(entries=tuple(entries[path] for path in paths)).canonical_digest() if paths else None
