"""Making private folders and fresh files: exact permission bits whatever the umask, never wider at any moment."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from firsthand.files.reading import CLOSE_ON_EXEC, LIST_FOLDER, NO_FOLLOW, Cursor
from firsthand.files.refusal import FileWriteError

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

    def step(self, folder_fd: int, part: bytes) -> int:
        """Open a folder, after making it if it is not there."""
        try:
            os.mkdir(part, self._mode & PRIVATE_FOLDER, dir_fd=folder_fd)
        except FileExistsError:
            return os.open(part, LIST_FOLDER, dir_fd=folder_fd)
        fd = os.open(part, LIST_FOLDER, dir_fd=folder_fd)
        os.fchmod(fd, self._mode)
        return fd


def _refused(where: str, error: OSError) -> FileWriteError:
    return FileWriteError(
        f"can't be made: {error.strerror or error}",
        where=where,
        next_step="free the name or the space, or name another folder",
    )
