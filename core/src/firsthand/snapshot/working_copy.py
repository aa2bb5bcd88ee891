"""The copy that commands run in: settled before and after each, so that nothing is carried from one to the next."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firsthand.files import Cursor, FileRefusedError, RemovalError, remove_path, split_path
from firsthand.files.reading import LIST_FOLDER, Parts
from firsthand.files.removal import TreeRemover, grant_owner, unlink
from firsthand.records import Manifest
from firsthand.snapshot.comparison import Content, compare_copy, contents
from firsthand.snapshot.drift import CopyDriftError, Difference

ROOT_MODE: Final = 0o700
FOLDER_MODE: Final = 0o755
_PASSES: Final = 8
_REPLACED: Final = ("symlink", "dangling-link", "link-loop", "not-a-directory", "changed-during-read")


@dataclass(frozen=True, slots=True)
class KeptFolder:
    """What may stand in one folder of the copy.

    Attributes:
        parts: the folder, from the copy's root.
        names: registered files here, those recorded as missing included: their appearance is drift, not a leftover.
        needed_folders: folders here that hold a registered file which is present.
        other_folders: folders here that only lead to missing ones; they go when nothing registered is in them.
    """

    parts: Parts
    names: frozenset[bytes]
    needed_folders: frozenset[bytes]
    other_folders: frozenset[bytes]


def kept_folders(manifest: Manifest) -> tuple[KeptFolder, ...]:
    """All folders on the way to registered files, each before those in it."""
    names: dict[Parts, set[bytes]] = {(): set()}
    below: dict[Parts, set[bytes]] = {(): set()}
    needed: dict[Parts, set[bytes]] = {}
    for entry in manifest.entries:
        parts, name = split_path(entry.path)
        names.setdefault(parts, set()).add(name)
        for depth, part in enumerate(parts):
            below.setdefault(parts[:depth], set()).add(part)
            if entry.state == "present":
                needed.setdefault(parts[:depth], set()).add(part)
    return tuple(
        KeptFolder(
            parts=parts,
            names=frozenset(names.get(parts, ())),
            needed_folders=frozenset(needed.get(parts, ())),
            other_folders=frozenset(below.get(parts, set()) - needed.get(parts, set())),
        )
        for parts in sorted({*names, *below}, key=lambda parts: (len(parts), parts))
    )


class _MendingCursor(Cursor):
    """Walks the copy and gives each folder on the way its mode back, whatever a command made of it."""

    def __init__(self, root_fd: int, mode: int) -> None:
        super().__init__(root_fd)
        self._mode = mode

    def step(self, folder_fd: int, part: bytes) -> int:
        try:
            fd = os.open(part, LIST_FOLDER, dir_fd=folder_fd)
        except PermissionError:
            grant_owner(folder_fd, part)
            fd = os.open(part, LIST_FOLDER, dir_fd=folder_fd)
        try:
            _mend(fd, self._mode)
        except OSError:
            os.close(fd)
            raise
        return fd


@dataclass(frozen=True, slots=True)
class WorkingCopy:
    """One disposable copy of the registered files.

    Attributes:
        path: its root, mode 0700; folders inside have 0755, files exactly the source's permission bits.
        manifest: what it was made from.
        kept: what may stand in each of its folders.
        root_identity: device and inode of the root when it was made.
    """

    path: Path
    manifest: Manifest
    kept: tuple[KeptFolder, ...]
    root_identity: tuple[int, int]

    def settle(self, expected: Mapping[str, Content] | None = None) -> None:
        """Remove every unregistered leftover, mend the folders' modes, then compare every registered file.

        Called before and after each command, when none runs. Follows no link and touches nothing outside.

        Args:
            expected: registered paths that should hold something else than was frozen, while a mutation stands.

        Raises:
            CopyDriftError: naming every path that differs, or the leftover that can't be removed.
            KeyError: `expected` names a path that is not registered as present.
        """
        wanted = contents(self.manifest)
        for path, content in (expected or {}).items():
            if wanted.get(path) is None:
                raise KeyError(path)
            wanted[path] = content
        root_fd = self._open()
        try:
            self._clear(root_fd)
            differences = compare_copy(root_fd, wanted)
        except RemovalError as error:
            raise CopyDriftError([Difference(error.path, "leftover", error.message)]) from error
        except OSError as error:
            raise CopyDriftError([Difference(".", "leftover", error.strerror or str(error))]) from error
        finally:
            os.close(root_fd)
        if differences:
            raise CopyDriftError(differences)

    def remove(self) -> None:
        """Remove the whole copy; absent is fine.

        Raises:
            RemovalError: something resisted.
        """
        remove_path(self.path)

    def _open(self) -> int:
        """A descriptor of the copy's own root, and of nothing put in its place."""
        try:
            parent_fd = os.open(self.path.parent, LIST_FOLDER)
            try:
                fd = _MendingCursor(parent_fd, ROOT_MODE).step(parent_fd, os.fsencode(self.path.name))
            finally:
                os.close(parent_fd)
        except OSError as error:
            raise CopyDriftError([Difference(".", "kind", error.strerror or str(error))]) from error
        found = os.fstat(fd)
        if (found.st_dev, found.st_ino) != self.root_identity:
            os.close(fd)
            raise CopyDriftError([Difference(".", "kind", "another folder stands in the copy's place")])
        return fd

    def _clear(self, root_fd: int) -> None:
        remover = TreeRemover(root_fd)
        with _MendingCursor(root_fd, FOLDER_MODE) as cursor:
            for folder in self.kept:
                folder_fd = _reach(cursor, folder.parts)
                if folder_fd is not None:
                    _clear_folder(folder_fd, folder, remover)
            for folder in reversed(self.kept):
                folder_fd = _reach(cursor, folder.parts) if folder.other_folders else None
                if folder_fd is None:
                    continue
                for name in folder.other_folders:
                    # Not empty: a registered file appeared in it, which the comparison names. Absent: as it should be.
                    with contextlib.suppress(OSError):
                        os.rmdir(name, dir_fd=folder_fd)


def _reach(cursor: Cursor, parts: Parts) -> int | None:
    """The folder's descriptor; None when it is gone or something else stands there, which the comparison names."""
    try:
        return cursor.at(parts)
    except FileRefusedError as error:
        if error.reason in _REPLACED:
            return None
        raise CopyDriftError([Difference(error.path, "leftover", f"{error.reason}: {error.detail}")]) from error


def _clear_folder(folder_fd: int, folder: KeptFolder, remover: TreeRemover) -> None:
    """Remove whatever may not stand in one open folder.

    Repeated until a look finds nothing, since a file system may skip entries while others are removed.
    """
    for _ in range(_PASSES):
        found = False
        folders: list[bytes] = []
        with os.scandir(folder_fd) as entries:
            for entry in entries:
                name = os.fsencode(entry.name)
                # What stands in a needed folder's place and is none is left for the comparison to name.
                if name in folder.names or name in folder.needed_folders:
                    continue
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_folder and name in folder.other_folders:
                    continue
                found = True
                if is_folder or not unlink(folder_fd, name):
                    folders.append(name)
        for name in folders:
            remover.remove_folder(folder_fd, name)
        if not found:
            return
    raise RemovalError(os.fsdecode(b"/".join(folder.parts)) or ".", "something keeps writing into it")


def _mend(fd: int, mode: int) -> None:
    if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
        os.fchmod(fd, mode)
