"""What the ledger writes: each a conditional statement whose row count is checked, with its entry in the chain.

All of these are called inside a transaction that has the write lock.
"""

from __future__ import annotations

import secrets
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from firsthand.canonical import JSONValue, parse_strict, sha256_hex
from firsthand.ledger.chain import append, latest
from firsthand.ledger.errors import FencedError, LedgerError
from firsthand.ledger.owner import Owner, boot_clock_ms
from firsthand.ledger.round import Claim, ClaimRequest, Round, read_rounds, row_as_json, tests_text
from firsthand.residues.identity import own_identity
from firsthand.rules import GOING_ON

STILL_GOING: Final = "state IN ('claimed', 'dispatched', 'sealed')"

_OWN: Final = "run_id = ? AND stage = ? AND round = ? AND nonce = ? AND fence = ?"
_KINDS: Final = "'claimed', 'dispatched', 'sealed', 'ended', 'recovered', 'lost'"


@dataclass(frozen=True, slots=True)
class Run:
    """What a run is bound to.

    Attributes:
        run_id: its id.
        fingerprint: of its definition.
        package_digest: bound by its first round; None before that, and where the definition names no document.
    """

    run_id: str
    fingerprint: str
    package_digest: str | None


def find_run(connection: sqlite3.Connection, run_id: str) -> Run | None:
    """What a run is bound to, or None for one that was never seen."""
    row = connection.execute(
        "SELECT run_id, fingerprint, package_digest FROM run WHERE run_id = ?", (run_id,)
    ).fetchone()
    return None if row is None else Run(*row)


def bind_run(connection: sqlite3.Connection, run_id: str, fingerprint: str) -> Run:
    """Bind a run unless it is bound; what it is bound to now, which may be another fingerprint."""
    written = connection.execute(
        "INSERT INTO run (run_id, fingerprint) VALUES (?, ?) ON CONFLICT DO NOTHING", (run_id, fingerprint)
    )
    if written.rowcount == 1:
        append(connection, run_id, "bound", {"at": now(), "fingerprint": fingerprint})
    bound = find_run(connection, run_id)
    if bound is None:
        raise LedgerError("a binding was not written", where=run_id, next_step="report this as a fault")
    return bound


def insert_claim(connection: sqlite3.Connection, request: ClaimRequest, number: int) -> Claim:
    """Claim a round, on the condition that it is the next one and none before it is open."""
    owner = Owner(own_identity(), boot_clock_ms() + int(request.lease_s * 1000))
    fence = latest(connection).seq + 1
    claim = Claim(request.run_id, request.stage, number, secrets.token_hex(32), fence)
    written = connection.execute(
        """
        INSERT INTO round (run_id, stage, round, nonce, fence, state, code, manifest_digest, content_digest, tests,
                           reason, owner_pid, owner_start, owner_boot, lease_until_ms)
        SELECT ?1, ?2, ?3, ?4, ?5, 'claimed', '', ?6, ?7, ?8, '', ?9, ?10, ?11, ?12
        WHERE ?3 = 1 + (SELECT count(*) FROM round WHERE run_id = ?1 AND stage = ?2)
          AND NOT EXISTS (SELECT 1 FROM round WHERE run_id = ?1 AND stage = ?2
                          AND state IN ('claimed', 'dispatched', 'sealed', 'unknown'))
        """,
        (
            request.run_id,
            request.stage,
            number,
            claim.nonce,
            fence,
            request.manifest_digest,
            request.content_digest,
            tests_text(request.tests),
            owner.identity.pid,
            owner.identity.start,
            owner.identity.boot,
            owner.lease_until_ms,
        ),
    )
    if written.rowcount != 1:
        raise _late()
    enter(connection, claim, "claimed")
    return claim


def update(
    connection: sqlite3.Connection,
    claim: Claim,
    kind: str,
    assignments: str,
    values: tuple[object, ...],
    *,
    where: str,
    usage: JSONValue = None,
) -> None:
    """Change a round's row, on the condition that it is still this claim's, and enter it.

    Args:
        connection: in a transaction.
        claim: who writes; its fence must be the row's.
        kind: of the entry.
        assignments: SQL text of ours, no value in it.
        values: the assignments' parameters.
        where: SQL text of ours: what else must hold.
        usage: goes into the entry.

    Raises:
        FencedError: no row fits.
    """
    statement = f"UPDATE round SET {assignments} WHERE {_OWN} AND {where}"  # noqa: S608 - no foreign text in it
    if connection.execute(statement, (*values, *_key(claim))).rowcount != 1:
        raise _late()
    enter(connection, claim, kind, usage)


def refuse_late(connection: sqlite3.Connection, claim: Claim) -> None:
    """Refuse a claim that no longer holds its round.

    Raises:
        FencedError: it was taken from it, or ended.
    """
    statement = f"SELECT 1 FROM round WHERE {_OWN} AND {STILL_GOING}"  # noqa: S608 - no foreign text in it
    if connection.execute(statement, _key(claim)).fetchone() is None:
        raise _late()


def mark_lost(connection: sqlite3.Connection, run_id: str, stage: str) -> None:
    """Mark rounds that go on without a holder as unknown, and fence the holder off."""
    for one in read_rounds(connection, run_id, stage):
        if one.facts.state == "unknown" and one.stored_state in GOING_ON:
            fence = latest(connection).seq + 1
            values = ("round_unknown", fence)
            update(
                connection,
                claim_of(one),
                "lost",
                "state = 'unknown', code = ?, fence = ?",
                values,
                where=STILL_GOING,
            )


def claim_of(one: Round) -> Claim:
    """The claim that may write a round now."""
    return Claim(one.run_id, one.facts.stage, one.facts.round, one.facts.nonce, one.fence)


def enter(connection: sqlite3.Connection, claim: Claim, kind: str, usage: JSONValue = None) -> None:
    """Enter a round's row as it is now."""
    body: dict[str, JSONValue] = {"at": now(), "row": _kept(row_as_json(connection, claim))}
    if usage is not None:
        body["usage"] = usage
    append(connection, claim.run_id, kind, body)


def refuse_changed_rows(connection: sqlite3.Connection, run_id: str) -> None:
    """Refuse rows that are not what their latest entries say.

    Raises:
        LedgerError: they were changed by another hand.
    """
    told: dict[tuple[JSONValue, JSONValue], JSONValue] = {}
    entries = f"SELECT body FROM entry WHERE run_id = ? AND kind IN ({_KINDS}) ORDER BY seq"  # noqa: S608 - the same
    for (text,) in connection.execute(entries, (run_id,)):
        body = parse_strict(text.encode())
        row = body.get("row") if isinstance(body, dict) else None
        if isinstance(row, dict):
            told[row["stage"], row["round"]] = row
    found: dict[tuple[JSONValue, JSONValue], JSONValue] = {
        (one.facts.stage, one.facts.round): _kept(row_as_json(connection, claim_of(one)))
        for one in read_rounds(connection, run_id)
    }
    if found != told:
        raise LedgerError(
            "a round is not what its latest entry says: the ledger was changed by another hand",
            where=run_id,
            next_step="put a backup in its place (docs/ledger.md, Restoring)",
        )


def now() -> str:
    """By the wall clock, for people: nothing is ordered or decided by it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _kept(row: dict[str, JSONValue]) -> dict[str, JSONValue]:
    """A row as an entry keeps it: the list of tests by its digest, so that entries stay small."""
    return {**row, "tests": sha256_hex(str(row["tests"]).encode())}


def _key(claim: Claim) -> tuple[object, ...]:
    return claim.run_id, claim.stage, claim.round, claim.nonce, claim.fence


def _late() -> FencedError:
    return FencedError(
        "this round is no longer this process's: it was closed, or taken as lost, before",
        where="round",
        next_step="see `firsthand runs show`; what came late counts for nothing",
    )
