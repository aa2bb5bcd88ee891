"""The entries: each bound to all before it by its head, and the latest head kept outside the database too."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firsthand.canonical import JSONValue, StrictJSONError, canonical_bytes, parse_strict
from firsthand.ledger.errors import LedgerError
from firsthand.residues.private import open_private

GENESIS: Final = "0" * 64
"""Stands before the first entry."""

_HEAD_LIMIT_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Head:
    """The latest entry: its sequence number, from 1 (0: there is none), and its digest over everything before."""

    seq: int
    digest: str


def link(previous: str, seq: int, run_id: str, kind: str, body: str) -> str:
    """The head of an entry. None of the parts but the body, which is last, can hold a line feed."""
    return hashlib.sha256(f"{previous}\n{seq}\n{run_id}\n{kind}\n{body}".encode()).hexdigest()


def latest(connection: sqlite3.Connection) -> Head:
    """The head as the database has it."""
    row = connection.execute("SELECT seq, head FROM entry ORDER BY seq DESC LIMIT 1").fetchone()
    return Head(0, GENESIS) if row is None else Head(row[0], row[1])


def append(connection: sqlite3.Connection, run_id: str, kind: str, body: dict[str, JSONValue]) -> Head:
    """Add an entry, inside the transaction that writes what it tells of."""
    before = latest(connection)
    text = canonical_bytes(body).decode()
    head = Head(before.seq + 1, link(before.digest, before.seq + 1, run_id, kind, text))
    connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?)", (head.seq, run_id, kind, text, head.digest))
    return head


def broken_link(connection: sqlite3.Connection) -> int | None:
    """The first sequence number that does not follow from the entries before it, or None. Reads all entries."""
    expected, previous = 1, GENESIS
    for seq, run_id, kind, body, head in connection.execute(
        "SELECT seq, run_id, kind, body, head FROM entry ORDER BY seq"
    ):
        if seq != expected or link(previous, seq, run_id, kind, body) != head:
            return expected
        expected, previous = seq + 1, head
    return None


def read_head(path: Path) -> Head | None:
    """The head that stands outside the database, or None where nothing was ever entered.

    Raises:
        LedgerError: it can't be read; it is kept.
    """
    try:
        descriptor = open_private(path, os.O_RDONLY)
        with os.fdopen(descriptor, "rb") as file:
            value = parse_strict(file.read(_HEAD_LIMIT_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, StrictJSONError) as error:
        raise _unreadable(path) from error
    if not isinstance(value, dict) or set(value) != {"digest", "seq"}:
        raise _unreadable(path)
    seq, digest = value["seq"], value["digest"]
    if not isinstance(seq, int) or not isinstance(digest, str):
        raise _unreadable(path)
    return Head(seq, digest)


def write_head(path: Path, head: Head) -> None:
    """Put the head outside the database: whole or not at all, on the disk when this returns.

    A later one that stands there already stays. A failure is no error: what it tells of is committed, a head that lags
    behind is accepted, and the next entry writes it again.
    """
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError, LedgerError):
        standing = read_head(path)
        if standing is not None and standing.seq >= head.seq:
            return
        try:
            descriptor = open_private(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            try:
                os.write(descriptor, canonical_bytes({"digest": head.digest, "seq": head.seq}))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(beside, path)
        except OSError:
            with suppress(OSError):
                os.unlink(beside)
            raise


def refuse_rollback(connection: sqlite3.Connection, outside: Head | None, file: Path) -> None:
    """Refuse a database that lacks what the head outside tells of: an old copy was put back, or the file is new.

    Args:
        connection: in a transaction, or one that nothing is written through meanwhile.
        outside: read before the transaction began, since the database may only have grown after it.
        file: the database.

    Raises:
        LedgerError: the entry is not there, or is another one.
    """
    if outside is None or outside.seq == 0:
        return
    row = connection.execute("SELECT head FROM entry WHERE seq = ?", (outside.seq,)).fetchone()
    if row is None or row[0] != outside.digest:
        raise LedgerError(
            f"the ledger is not the latest: entry {outside.seq} was written, and it is not in here",
            where=str(file),
            next_step="put the latest ledger back; if it is lost, see docs/ledger.md, Restoring",
        )


def _unreadable(path: Path) -> LedgerError:
    return LedgerError(
        "the ledger's head can't be read",
        where=str(path),
        next_step="look at the file; see docs/ledger.md, Restoring, before you move it away",
    )
