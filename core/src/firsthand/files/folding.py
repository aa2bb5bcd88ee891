"""Which names a file system takes for the same: asked of the file system itself, where the copies will lie."""

from __future__ import annotations

import os
import secrets
import unicodedata
from dataclasses import dataclass
from typing import Final

from firsthand.files.refusal import FileWriteError
from firsthand.files.removal import remove_entry
from firsthand.files.writing import PRIVATE_FOLDER, make_folder, write_fresh


@dataclass(frozen=True, slots=True)
class Folding:
    """How a folder's file system compares names.

    Attributes:
        case: `a` and `A` name the same file.
        unicode: the composed and the decomposed spelling of a character name the same file.
    """

    case: bool = False
    unicode: bool = False

    def fold(self, name: str) -> str:
        """A spelling that is the same for all names which the file system takes for the same."""
        if self.unicode:
            name = unicodedata.normalize("NFD", name)
        if self.case:
            name = name.casefold()
            if self.unicode:
                # Folding case can compose or reorder anew.
                name = unicodedata.normalize("NFD", name)
        return name


_COMPOSED: Final = "\N{LATIN SMALL LETTER E WITH ACUTE}"
_DECOMPOSED: Final = "e\N{COMBINING ACUTE ACCENT}"


def probe_folding(folder_fd: int) -> Folding:
    """Ask the file system of an open folder by making two files in a folder of its own there, removed at once.

    Raises:
        FileWriteError, RemovalError: nothing can be made or removed there.
    """
    name = f".folding-{secrets.token_hex(8)}".encode()
    try:
        fd = make_folder(folder_fd, name, PRIVATE_FOLDER)
    except OSError as error:
        raise FileWriteError(
            f"the file system can't be asked how it compares names: {error.strerror}",
            where=os.fsdecode(name),
            next_step="make room where the copies lie, or name another folder",
        ) from error
    try:
        try:
            write_fresh(fd, b"case", b"", 0o600)
            write_fresh(fd, _COMPOSED.encode(), b"", 0o600)
            return Folding(case=_stands(fd, b"CASE"), unicode=_stands(fd, _DECOMPOSED.encode()))
        finally:
            os.close(fd)
    finally:
        remove_entry(folder_fd, name)


def _stands(folder_fd: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
