"""The connection: opened safely, written under an immediate transaction, upgraded after a backup."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self

from firsthand.ledger.chain import Head, append, broken_link, latest, read_head, refuse_rollback, write_head
from firsthand.ledger.errors import LedgerError
from firsthand.ledger.place import LedgerPlace
from firsthand.ledger.schema import APPLICATION_ID, MIGRATIONS
from firsthand.residues.private import open_private

BUSY_TIMEOUT_S: Final = 30.0
"""How long a write waits for other processes' writes."""

_KEPT: Final = "look at the file, which is kept as it is; put a backup in its place (docs/ledger.md, Restoring)"


class Database:
    """One open ledger file. Thread-safe: one thread at a time. Make one with `open`."""

    def __init__(self, connection: sqlite3.Connection, place: LedgerPlace) -> None:
        self._connection = connection
        self._place = place
        self._lock = threading.RLock()

    @classmethod
    def open(cls, place: LedgerPlace, *, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> Self:
        """Open or make the ledger, upgrade it, and check that it is sound.

        1. Place, owner, mode, kind, file system; see `LedgerPlace.prepare`.
        2. It is ours (`application_id`) and of no newer version (`user_version`).
        3. An older version is copied by the database's own means beside itself, then upgraded in one transaction.
        4. SQLite finds no damage, each entry follows from the ones before it, and the head outside is among them.

        Args:
            place: where it lies.
            migrations: the steps; another list only serves tests of upgrading.

        Raises:
            LedgerError: for each breach. What is found damaged is left as it is.
        """
        place.prepare()
        with _told(place.file):
            connection = sqlite3.connect(
                place.file, isolation_level=None, timeout=BUSY_TIMEOUT_S, check_same_thread=False
            )
        database = cls(connection, place)
        try:
            with _told(place.file):
                database._configure()
                database._upgrade(migrations)
                database._refuse_unsound()
        except BaseException:
            connection.close()
            raise
        return database

    @property
    def place(self) -> LedgerPlace:
        """Where it lies."""
        return self._place

    def close(self) -> None:
        """Close the connection; safe to call again."""
        self._connection.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent state for the length of a block.

        Raises:
            LedgerError: it can't be read.
        """
        with self._lock, _told(self._place.file):
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                self._connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that has the write lock from its beginning; on the disk when the block is left.

        An exception undoes all of it. A failing commit undoes all of it too.

        Raises:
            LedgerError: it can't be written: full, read-only, damaged, or held by others for `BUSY_TIMEOUT_S`.
        """
        with self._lock:
            with _told(self._place.file), self._transaction():
                before = latest(self._connection)
                yield self._connection
                after = latest(self._connection)
            if after != before:
                write_head(self._place.head, after)

    def head(self) -> Head:
        """The latest entry."""
        with self.reading() as connection:
            return latest(connection)

    def backup(self, target: Path) -> None:
        """Copy the ledger by the database's own means (never by copying the file, which may be mid-write).

        Args:
            target: must not exist; mode 0600 from its first byte.

        Raises:
            LedgerError: something is there, it can't be written, or the copy is not sound.
        """
        with self._lock, _told(target):
            try:
                os.close(open_private(target, os.O_RDWR | os.O_CREAT | os.O_EXCL))
            except OSError as error:
                raise LedgerError(
                    f"the backup can't be made: {error.strerror}", where=str(target), next_step="name another file"
                ) from error
            copy = sqlite3.connect(target, isolation_level=None)
            try:
                copy.execute("PRAGMA synchronous = EXTRA")
                self._connection.backup(copy)
                _refuse_damage(copy, target)
            except BaseException:
                with suppress(OSError):
                    os.unlink(target)
                raise
            finally:
                copy.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # After some failures SQLite has undone it already.
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    def _configure(self) -> None:
        connection = self._connection
        # Nothing goes into temporary files, whose mode and place are not ours to say.
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA foreign_keys = ON")
        # With anything less the removal of the journal can be lost in a power cut, and with it the commit.
        connection.execute("PRAGMA synchronous = EXTRA")
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if mode != "delete":
            raise LedgerError(
                f"the ledger has the journal mode {mode}, which this program never sets",
                where=str(self._place.file),
                next_step=_KEPT,
            )

    def _upgrade(self, migrations: Sequence[Sequence[str]]) -> None:
        version = self._version(len(migrations))
        if version == len(migrations):
            return
        if version:
            folder, head = self._place.folder, latest(self._connection)
            target = folder / f"ledger-version-{version}-entry-{head.seq}.sqlite"
            # Another process that upgrades at the same time may have made the same backup.
            if not target.exists():
                self.backup(target)
        outside = read_head(self._place.head)
        with self._transaction():
            # Looked at again under the lock: another process may just have done it.
            version = self._version(len(migrations))
            if version == len(migrations):
                return
            if version == 0 and outside is not None:
                raise LedgerError(
                    "the ledger is gone: entries were written, and the file is new or empty",
                    where=str(self._place.file),
                    next_step="put the latest ledger back; if it is lost, see docs/ledger.md, Restoring",
                )
            for step in migrations[version:]:
                for statement in step:
                    self._connection.execute(statement)
            self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._connection.execute(f"PRAGMA user_version = {len(migrations)}")
            if version:
                append(self._connection, "", "upgraded", {"from": version, "to": len(migrations)})

    def _version(self, newest: int) -> int:
        """The version of the file; 0 for an empty one."""
        connection = self._connection
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        objects = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if (application, version, objects) == (0, 0, 0):
            return 0
        if application != APPLICATION_ID or version < 1:
            raise LedgerError("this database is no ledger", where=str(self._place.file), next_step=_KEPT)
        if version > newest:
            raise LedgerError(
                f"the ledger has version {version}, and this program knows versions up to {newest}",
                where=str(self._place.file),
                next_step="use the newer version of Firsthand",
            )
        return version

    def _refuse_unsound(self) -> None:
        outside = read_head(self._place.head)
        with self.reading() as connection:
            _refuse_damage(connection, self._place.file)
            refuse_rollback(connection, outside, self._place.file)


def _refuse_damage(connection: sqlite3.Connection, file: Path) -> None:
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise LedgerError(f"the ledger is malformed: {found}", where=str(file), next_step=_KEPT)
    broken = broken_link(connection)
    if broken is not None:
        raise LedgerError(
            f"the ledger was changed by another hand: entry {broken} does not follow from those before it",
            where=str(file),
            next_step=_KEPT,
        )


@contextmanager
def _told(file: Path) -> Iterator[None]:
    """Say what SQLite's errors mean, and what to do about each."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_BUSY"):
            problem, next_step = "is held by another process", "wait for it, or end it if it is stopped"
        elif name.startswith("SQLITE_FULL"):
            problem, next_step = "can't grow: the disk is full", "free some space; nothing was entered"
        elif name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_CANTOPEN")):
            problem, next_step = "can't be written", "make its folder writable, or name another one with --state"
        elif name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            problem, next_step = "is malformed", _KEPT
        else:
            problem, next_step = "can't be used", "repair what the message names"
        raise LedgerError(f"the ledger {problem} ({error})", where=str(file), next_step=next_step) from error
