"""Reading the files below a root on every platform, for comparisons that copy and execute nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from firsthand.files.reading import Cursor, FileContent, open_folder, read_path, split_path
from firsthand.files.refusal import FileRefusedError

_REPARSE_POINT = 0x400


class FilesBelow(Protocol):
    """Reads relative POSIX paths below one root."""

    def read(self, path: str, limit_bytes: int) -> FileContent | None:
        """The file's exact bytes, mode and links; None for true absence.

        Raises:
            FileRefusedError: with the reason.
        """


@contextmanager
def files_below(root: Path) -> Iterator[FilesBelow]:
    """Open a root for reading: relative to descriptors where the platform can, component by component elsewhere.

    Without descriptors (Windows) links are refused as well, and each folder on the way must be the same before and
    after; but who swaps folders at the right moments can be followed. So that way serves only to compare digests,
    and nothing is frozen through it.

    Raises:
        FileRefusedError: the root is no folder or can't be read.
    """
    if os.open not in os.supports_dir_fd:
        yield SteppingReader(root)
        return
    root_fd = open_folder(root)
    try:
        with Cursor(root_fd) as cursor:
            yield cursor
    finally:
        os.close(root_fd)


class SteppingReader:
    """Reads below a root by path, looking at each component before and after."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise FileRefusedError(str(root), "not-a-directory")
        self._root = root

    def read(self, path: str, limit_bytes: int) -> FileContent | None:
        """See `FilesBelow.read`."""
        folders, name = split_path(path)
        chain = [self._root]
        for part in folders:
            chain.append(chain[-1] / os.fsdecode(part))
        before = [_folder(folder, path) for folder in chain]
        if None in before:
            return None
        leaf = chain[-1] / os.fsdecode(name)
        content = read_path(leaf, limit_bytes)
        if [_folder(folder, path) for folder in chain] != before:
            raise FileRefusedError(path, "changed-during-read")
        return content


def _folder(folder: Path, shown: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(folder)
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        raise FileRefusedError(shown, "not-a-directory") from error
    except OSError as error:
        raise FileRefusedError(shown, "permission", error.strerror or "") from error
    # A junction is no symbolic link to Windows, and leads elsewhere all the same.
    if stat.S_ISLNK(found.st_mode) or getattr(found, "st_file_attributes", 0) & _REPARSE_POINT:
        raise FileRefusedError(shown, "symlink")
    if not stat.S_ISDIR(found.st_mode):
        raise FileRefusedError(shown, "not-a-directory")
    return found.st_dev, found.st_ino
