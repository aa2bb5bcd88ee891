"""Making private folders and fresh files: exact permission bits whatever the umask, never wider at any moment."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from firsthand.files.reading import CLOSE_ON_EXEC, LIST_FOLDER, NO_FOLLOW, Cursor, Parts
from firsthand.files.refusal import FileRefusedError, FileWriteError
from firsthand.files.removal import grant_owner

PRIVATE_FOLDER: Final = 0o700
_FRESH: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | CLOSE_ON_EXEC | getattr(os, "O_BINARY", 0)


def make_private_folder(path: Path) -> None:
    """Make one folder, mode 0700, whose parent exists. Nothing may stand there yet.

    Raises:
        FileWriteError: it exists, or can't be made.
    """
    try:
        # The mode given to mkdir is narrowed by the umask; afterwards only the owner's own bits can be missing.
        os.mkdir(path, PRIVATE_FOLDER)
        if stat.S_IMODE(os.lstat(path).st_mode) != PRIVATE_FOLDER:
            os.chmod(path, PRIVATE_FOLDER)
    except OSError as error:
        raise _refused(str(path), error) from error


def make_folder(folder_fd: int, name: bytes, mode: int) -> int:
    """Make a folder inside an open one, with an exact mode, never wider at any moment; gives its descriptor.

    Raises:
        OSError: something stands there, or it can't be made.
    """
    os.mkdir(name, mode & PRIVATE_FOLDER, dir_fd=folder_fd)
    try:
        fd = os.open(name, LIST_FOLDER, dir_fd=folder_fd)
    except PermissionError:
        # The umask shuts out even the owner.
        grant_owner(folder_fd, name)
        fd = os.open(name, LIST_FOLDER, dir_fd=folder_fd)
    os.fchmod(fd, mode)
    return fd


def open_private_folder(path: Path) -> int:
    """Open a folder that is ours alone, and give its descriptor; the caller closes it.

    Raises:
        FileWriteError: a link, no folder, another owner, or a mode other than 0700.
    """
    try:
        fd = os.open(path, LIST_FOLDER)
    except OSError as error:
        raise _refused(str(path), error) from error
    found = os.fstat(fd)
    problem = ""
    if stat.S_IMODE(found.st_mode) != PRIVATE_FOLDER:
        problem = f"its mode is {stat.S_IMODE(found.st_mode):04o}, not 0700"
    elif found.st_uid != os.geteuid():
        problem = f"its owner is uid {found.st_uid}, not {os.geteuid()}"
    if problem:
        os.close(fd)
        raise FileWriteError(
            f"the folder is not private: {problem}", where=str(path), next_step="remove it or name another folder"
        )
    return fd


def write_fresh(folder_fd: int, name: bytes, data: bytes, mode: int) -> None:
    """Write a new file, a fresh inode, inside an open folder.

    Args:
        folder_fd: descriptor of the folder.
        name: one component; nothing may stand there, not even a dangling link.
        data: exact content.
        mode: exact permission bits. Until all is written the file has at most the owner's part of them.

    Raises:
        FileWriteError: the name is taken, or the operating system refuses. A file begun is removed again.
    """
    try:
        fd = os.open(name, _FRESH, mode & 0o600, dir_fd=folder_fd)
    except OSError as error:
        raise _refused(os.fsdecode(name), error) from error
    try:
        written = os.write(fd, data)
        if written < len(data):
            rest = memoryview(data)[written:]
            while rest:
                rest = rest[os.write(fd, rest) :]
        os.fchmod(fd, mode)
    except OSError as error:
        os.unlink(name, dir_fd=folder_fd)
        raise _refused(os.fsdecode(name), error) from error
    finally:
        os.close(fd)


class MakingCursor(Cursor):
    """A cursor that makes the folders that it walks through; for trees of our own making.

    Args:
        root_fd: descriptor of the tree's root.
        mode: exact mode of each folder that it makes. One that is there already is taken as it is: another cursor of
            the same tree may have made it a moment ago.
    """

    def __init__(self, root_fd: int, mode: int) -> None:
        super().__init__(root_fd)
        self._mode = mode

    def at(self, parts: Parts) -> int:
        """The descriptor of a folder below the root, made if it was not there; valid until the next call.

        Raises:
            FileWriteError: something else stands in its place, or the operating system refuses.
        """
        try:
            folder_fd = super().at(parts)
        except FileRefusedError as error:
            raise FileWriteError(
                f"a folder can't be made: {error.message}",
                where=error.path,
                next_step="free the name or the space, or name another folder",
            ) from error
        assert folder_fd is not None  # noqa: S101 - `step` makes what is absent
        return folder_fd

    def step(self, folder_fd: int, part: bytes) -> int:
        """Open a folder, after making it if it is not there."""
        try:
            return make_folder(folder_fd, part, self._mode)
        except FileExistsError:
            return os.open(part, LIST_FOLDER, dir_fd=folder_fd)


def _refused(where: str, error: OSError) -> FileWriteError:
    return FileWriteError(
        f"can't be made: {error.strerror or error}",
        where=where,
        next_step="free the name or the space, or name another folder",
    )
