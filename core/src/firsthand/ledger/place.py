"""Where the ledger lies, and what is refused there before SQLite opens anything."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from firsthand.ledger.errors import LedgerError
from firsthand.ledger.filesystem import network_name
from firsthand.residues import StateDirectory
from firsthand.residues.private import PRIVATE_FILE, open_private

_JOURNAL: Final = "-journal"
_FOREIGN: Final = ("-wal", "-shm")


@dataclass(frozen=True, slots=True)
class LedgerPlace:
    """The files of one ledger.

    Attributes:
        folder: 0700, this user's own.
        file: the database, 0600 from its first byte. SQLite gives its journal the same mode.
        head: outside the folder: sequence number and digest of the latest entry, so that an old copy put back is
            noticed.
    """

    folder: Path
    file: Path
    head: Path

    @classmethod
    def of(cls, state: StateDirectory) -> Self:
        """The places in a state directory, which was found to be private and outside the source."""
        return cls(state.ledger, state.ledger / "ledger.sqlite", state.path / "ledger-head")

    def prepare(self) -> None:
        """Make the file when there is none, and refuse what could be steered, read or broken by others.

        1. The folder lies on a file system of this machine.
        2. Each file is a regular one, no link, has one name, this user's, mode 0600.
        3. There is no write-ahead log: this ledger never has one, and SQLite would read a foreign one in.

        Only names are looked at: a descriptor that is closed here would take away the locks of every other connection
        of this process.

        Raises:
            LedgerError: for each breach, with what to do about it.
        """
        name = network_name(self.folder)
        if name is not None:
            raise LedgerError(
                f"the ledger would lie on a network file system: {name}",
                where=str(self.folder),
                next_step="name a folder on a local disk with --state",
            )
        for suffix in _FOREIGN:
            foreign = self.file.with_name(self.file.name + suffix)
            if os.path.lexists(foreign):
                raise LedgerError(
                    "a write-ahead log lies beside the ledger, which never has one",
                    where=str(foreign),
                    next_step="find out who put it there, and move it away",
                )
        # A closing connection may remove its journal between two looks.
        with suppress(FileNotFoundError):
            _refuse_foreign(self.file.with_name(self.file.name + _JOURNAL))
        try:
            _refuse_foreign(self.file)
        except FileNotFoundError:
            self._make()

    def _make(self) -> None:
        try:
            os.close(open_private(self.file, os.O_RDWR | os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            _refuse_foreign(self.file)  # another process made it a moment ago
        except OSError as error:
            raise LedgerError(
                f"the ledger can't be made: {error.strerror}",
                where=str(self.file),
                next_step="repair what the message names, or name another folder with --state",
            ) from error


def _refuse_foreign(path: Path) -> None:
    """Refuse a file that is not ours alone.

    Raises:
        FileNotFoundError: nothing is there.
        LedgerError: what is there is refused.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise LedgerError(
            f"the ledger can't be looked at: {error.strerror}", where=str(path), next_step="repair what it names"
        ) from error
    if stat.S_ISLNK(found.st_mode):
        problem, next_step = "is a symbolic link", "find out who put it there, and put the file in its place"
    elif not stat.S_ISREG(found.st_mode):
        problem, next_step = "is no regular file", "find out who put it there, and move it away"
    elif os.name != "posix":
        return
    elif found.st_uid != os.geteuid():
        problem, next_step = f"belongs to uid {found.st_uid}, not to uid {os.geteuid()}", "run as its owner"
    elif found.st_nlink != 1:
        problem, next_step = f"has {found.st_nlink} names", "find the other name, and remove it"
    elif stat.S_IMODE(found.st_mode) != PRIVATE_FILE:
        problem = f"has mode {stat.S_IMODE(found.st_mode):04o}, not 0600"
        next_step = f"find out who changed it, then run: chmod 600 '{path}'"
    else:
        return
    raise LedgerError(f"the ledger {problem}", where=str(path), next_step=next_step)
