"""Reading the source's registered files: one read serves the digest and, where one is wanted, the copy."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

from firsthand.canonical import sha256_hex
from firsthand.definition import (
    FILE_LIMIT_BYTES,
    TOTAL_LIMIT_BYTES,
    Definition,
    DefinitionError,
    Registered,
)
from firsthand.files import Cursor, FileContent, FileRefusedError, MakingCursor, open_folder, split_path, write_fresh
from firsthand.records import Manifest, ManifestEntry
from firsthand.snapshot.comparison import Content, contents, differs
from firsthand.snapshot.drift import Difference, SourceDriftError
from firsthand.snapshot.lanes import in_lanes

PRISTINE_FOLDER_MODE = 0o700


def survey(definition: Definition) -> Manifest:
    """Read every registered file of the source, without copying, and say what stands there.

    Raises:
        DefinitionError: a file is refused, with its field and reason, or all are larger than 16 MiB together.
    """
    return read_source(definition, None)


def read_source(definition: Definition, target_fd: int | None) -> Manifest:
    """Read every registered file once; with `target_fd`, write each below that empty folder from the same bytes.

    Raises:
        DefinitionError: as `survey`. What was written by then stays.
        FileWriteError: the copy can't be written.
    """
    registered = definition.registered
    total = _Total("package" if definition.document.review_verification is None else "reviewVerification.files")
    source_fd = _open_root(definition)

    def portion(items: Sequence[tuple[int, Registered]]) -> list[tuple[int, ManifestEntry | DefinitionError]]:
        with Cursor(source_fd) as source:
            target = None if target_fd is None else MakingCursor(target_fd, PRISTINE_FOLDER_MODE)
            try:
                return [(place, _entry(source, target, each, total)) for place, each in items]
            finally:
                if target is not None:
                    target.close()

    try:
        # Neighbours share their folder's descriptor, so the order of reading is by path.
        answers = in_lanes(sorted(enumerate(registered), key=lambda item: item[1].path), portion)
    finally:
        os.close(source_fd)
    # Sorted back, so that the manifest has the definition's order and the first refusal is always the same one.
    entries: list[ManifestEntry] = []
    for _, answer in sorted(answers, key=lambda item: item[0]):
        if isinstance(answer, DefinitionError):
            raise answer
        entries.append(answer)
    return Manifest(entries=tuple(entries))


def check_source(definition: Definition, manifest: Manifest) -> None:
    """Compare the source with what was frozen: state, mode and bytes of every registered file.

    Raises:
        SourceDriftError: naming every path that differs.
    """
    source_fd = _open_root(definition)
    wanted = contents(manifest)

    def portion(items: Sequence[tuple[str, Content | None]]) -> list[Difference | None]:
        with Cursor(source_fd) as source:
            return [_source_difference(source, path, content) for path, content in items]

    try:
        answers = in_lanes(sorted(wanted.items()), portion)
    finally:
        os.close(source_fd)
    found = {difference.path: difference for difference in answers if difference is not None}
    for each in definition.registered:
        if each.path not in wanted:
            found[each.path] = Difference(each.path, "appeared", "not in the manifest")
    if found:
        # In the manifest's order; what it does not know comes last.
        raise SourceDriftError([found[path] for path in dict.fromkeys((*wanted, *found)) if path in found])


class _Total:
    """Adds up what all lanes read."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._lock = threading.Lock()
        self._bytes = 0

    def add(self, size: int) -> None:
        with self._lock:
            self._bytes += size
            if self._bytes > TOTAL_LIMIT_BYTES:
                raise DefinitionError(self._field, "total-too-large", f"more than {TOTAL_LIMIT_BYTES} bytes")


def _entry(
    source: Cursor, target: MakingCursor | None, each: Registered, total: _Total
) -> ManifestEntry | DefinitionError:
    try:
        content = source.read(each.path, FILE_LIMIT_BYTES)
    except FileRefusedError as error:
        refusal = DefinitionError(
            each.field, error.reason, f"{each.path}: {error.detail}" if error.detail else each.path
        )
        refusal.__cause__ = error
        return refusal
    if content is None:
        return ManifestEntry(path=each.path, state="missing", mode=None, size=None, links=None, sha256=None)
    total.add(len(content.data))
    if target is not None:
        put(target, each.path, content)
    return ManifestEntry(
        path=each.path,
        state="present",
        mode=content.mode,
        size=len(content.data),
        links=content.links,
        sha256=sha256_hex(content.data),
    )


def put(target: MakingCursor, path: str, content: FileContent) -> None:
    """Write one file below a tree of our own making, with its folders.

    Raises:
        FileWriteError: it can't be written.
    """
    parts, name = split_path(path)
    write_fresh(target.at(parts), name, content.data, content.mode)


def _source_difference(source: Cursor, path: str, wanted: Content | None) -> Difference | None:
    limit = FILE_LIMIT_BYTES if wanted is None else wanted.size
    try:
        content = source.read(path, limit)
    except FileRefusedError as error:
        if error.reason == "too-large":
            return Difference(path, "appeared" if wanted is None else "size", error.detail)
        return Difference(path, "kind", error.reason)
    if content is not None and wanted is not None:
        return differs(path, content, wanted)
    if content is None and wanted is None:
        return None
    return Difference(path, "missing" if content is None else "appeared")


def _open_root(definition: Definition) -> int:
    try:
        return open_folder(definition.root)
    except FileRefusedError as error:
        raise DefinitionError("root", error.reason, str(definition.root)) from error
