"""Freezing registered files: a pristine copy that no command ever enters, and working copies made from it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firsthand.definition import Definition, refuse_collisions
from firsthand.errors import StateError
from firsthand.files import (
    Cursor,
    FileContent,
    FileRefusedError,
    MakingCursor,
    chain,
    identity,
    make_private_folder,
    open_folder,
    open_private_folder,
    probe_folding,
    remove_entry,
    remove_path,
)
from firsthand.files.reading import LIST_FOLDER
from firsthand.records import Manifest, ManifestEntry
from firsthand.snapshot.comparison import Content, compare_copy, contents, differs
from firsthand.snapshot.drift import CopyDriftError, Difference
from firsthand.snapshot.lanes import in_lanes
from firsthand.snapshot.survey import put, read_source
from firsthand.snapshot.working_copy import FOLDER_MODE, WorkingCopy, kept_folders

PRISTINE_NAME: Final = "pristine"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was frozen.

    Attributes:
        manifest: one entry for each registered path, in the definition's order.
        pristine: root of the frozen bytes, mode 0700; the reviewer reads from here, no command is ever shown it.
        source: the root that was frozen; no copy may lie in it.
    """

    manifest: Manifest
    pristine: Path
    source: Path

    def working_copy(self, path: Path) -> WorkingCopy:
        """Make a disposable copy: fresh inodes, exact permission bits, each file checked while it is copied.

        Args:
            path: its root; nothing may stand there, the parent exists. Outside the source and the pristine copy.

        Raises:
            CopyDriftError: the pristine copy is not what was frozen.
            StateError: the place is no place for a copy, or can't be written.
        """
        _refuse_place(path, self.source, "the source")
        _refuse_place(path, self.pristine, "the pristine copy")
        make_private_folder(path)
        try:
            root_identity = self._fill(path)
        except BaseException:
            remove_path(path)
            raise
        return WorkingCopy(
            path=path, manifest=self.manifest, kept=kept_folders(self.manifest), root_identity=root_identity
        )

    def read(self, path: str) -> bytes:
        """The frozen bytes of one registered, present file, compared with the manifest before they are given.

        Raises:
            CopyDriftError: they are not what was frozen.
            KeyError: the path is not registered, or recorded as missing.
        """
        entry = self.manifest.entry(path)
        if entry is None or entry.state == "missing":
            raise KeyError(path)
        pristine_fd = self._open()
        try:
            with Cursor(pristine_fd) as cursor:
                return _frozen(cursor, entry).data
        finally:
            os.close(pristine_fd)

    def check_pristine(self) -> None:
        """Compare the whole pristine copy with the manifest, unregistered files included.

        Raises:
            CopyDriftError: naming every path that differs.
        """
        pristine_fd = self._open()
        try:
            differences = compare_copy(pristine_fd, contents(self.manifest))
            if not differences:
                differences = self._unregistered(pristine_fd)
        except OSError as error:
            raise CopyDriftError([Difference(".", "kind", error.strerror or str(error))]) from error
        finally:
            os.close(pristine_fd)
        if differences:
            raise CopyDriftError(differences)

    def _open(self) -> int:
        try:
            return open_folder(self.pristine)
        except FileRefusedError as error:
            raise CopyDriftError([Difference(".", "kind", error.reason)]) from error

    def _fill(self, path: Path) -> tuple[int, int]:
        """Copy every present file below a new root; gives the root's device and inode."""
        pristine_fd = self._open()
        try:
            target_fd = open_private_folder(path)
            try:
                present = sorted(
                    (entry for entry in self.manifest.entries if entry.state == "present"), key=lambda entry: entry.path
                )

                def portion(entries: Sequence[ManifestEntry]) -> list[None]:
                    with Cursor(pristine_fd) as source, MakingCursor(target_fd, FOLDER_MODE) as target:
                        for entry in entries:
                            put(target, entry.path, _frozen(source, entry))
                    return []

                in_lanes(present, portion)
                found = os.fstat(target_fd)
            finally:
                os.close(target_fd)
        finally:
            os.close(pristine_fd)
        return found.st_dev, found.st_ino

    def _unregistered(self, pristine_fd: int) -> list[Difference]:
        differences: list[Difference] = []
        with Cursor(pristine_fd) as cursor:
            for folder in kept_folders(self.manifest):
                parts = folder.parts
                # Passing through needs no right to list; listing does.
                passing_fd = cursor.at(parts)
                if passing_fd is None:
                    continue
                folder_fd = os.open(b".", LIST_FOLDER, dir_fd=passing_fd)
                try:
                    with os.scandir(folder_fd) as entries:
                        names = {os.fsencode(entry.name) for entry in entries}
                finally:
                    os.close(folder_fd)
                differences.extend(
                    Difference(os.fsdecode(b"/".join((*parts, name))), "appeared", "not registered")
                    for name in sorted(names - folder.names - folder.needed_folders)
                )
        return differences


def freeze(definition: Definition, destination: Path) -> Snapshot:
    """Read every registered file once; the same bytes give the digest and the pristine copy.

    Args:
        definition: what to freeze.
        destination: a private folder (0700, ours, no link) outside the source; made if nothing stands there and the
            parent exists. The pristine copy becomes its entry `pristine`, which may not exist yet.

    Raises:
        DefinitionError: a file is refused, with its field and reason; nothing is left in the destination.
        StateError: the destination is no place for copies, or can't be written.
    """
    _refuse_place(destination, definition.root, "the source")
    if not os.path.lexists(destination):
        make_private_folder(destination)
    destination_fd = open_private_folder(destination)
    try:
        folding = probe_folding(destination_fd)
        registered = definition.registered
        refuse_collisions([each.path for each in registered], [each.field for each in registered], folding)
        pristine = destination / PRISTINE_NAME
        make_private_folder(pristine)
        try:
            pristine_fd = open_private_folder(pristine)
            try:
                manifest = read_source(definition, pristine_fd)
            finally:
                os.close(pristine_fd)
        except BaseException:
            remove_entry(destination_fd, os.fsencode(PRISTINE_NAME))
            raise
    finally:
        os.close(destination_fd)
    return Snapshot(manifest=manifest, pristine=pristine, source=definition.root)


def _frozen(cursor: Cursor, entry: ManifestEntry) -> FileContent:
    """One file of the pristine copy, compared with its entry."""
    assert entry.size is not None  # noqa: S101 - only present entries are asked for
    try:
        content = cursor.read(entry.path, entry.size)
    except FileRefusedError as error:
        raise CopyDriftError([Difference(entry.path, "kind", error.reason)]) from error
    if content is None:
        raise CopyDriftError([Difference(entry.path, "missing")])
    wanted = Content.of_entry(entry)
    difference = None if wanted is None else differs(entry.path, content, wanted)
    if difference is not None:
        raise CopyDriftError([difference])
    return content


def _refuse_place(path: Path, forbidden: Path, name: str) -> None:
    """Refuse a place for copies that lies in a folder or holds it, whatever it is called."""
    if not path.is_absolute():
        raise StateError("a copy's place is not an absolute path", where=str(path), next_step="name it in full")
    folder = identity(forbidden)
    if folder in chain(path) or (folder is not None and identity(path) in chain(forbidden)):
        raise StateError(
            f"a copy may not lie in {name}, nor around it",
            where=str(path),
            next_step="choose a state directory outside with --state",
        )
