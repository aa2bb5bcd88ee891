"""The ledger: what each run is bound to, which rounds were claimed, and what is known of each.

Source: the contract, Ledger and gate. Every write is one transaction that has the lock from its beginning, is one
conditional statement whose row count is checked, and leaves an entry in the chain.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from firsthand.canonical import JSONValue, parse_strict
from firsthand.ledger.chain import Head, append, latest
from firsthand.ledger.claiming import refuse_claim, refuse_other_definition, refuse_other_package
from firsthand.ledger.database import Database
from firsthand.ledger.place import LedgerPlace
from firsthand.ledger.recovery import refuse_recovery
from firsthand.ledger.round import Claim, ClaimRequest, Round, read_rounds
from firsthand.ledger.rows import (
    STILL_GOING,
    Run,
    bind_run,
    claim_of,
    find_run,
    insert_claim,
    mark_lost,
    now,
    refuse_changed_rows,
    refuse_late,
    update,
)
from firsthand.records import Usage
from firsthand.residues import StateDirectory
from firsthand.rules import GOING_ON, Disposition, ReviewVerdict, RoundState, next_round


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the chain."""

    seq: int
    run_id: str
    kind: str
    body: JSONValue


class Ledger:
    """An open ledger; a context manager. Thread-safe: one thread at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def open(cls, state: StateDirectory) -> Self:
        """Open or make the ledger of a state directory, and check that it is sound; see `Database.open`.

        Raises:
            LedgerError: it can't be used, or is not sound. It is left as it is.
        """
        return cls(Database.open(LedgerPlace.of(state)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it; safe to call again."""
        self._database.close()

    def bind(self, run_id: str, fingerprint: str) -> None:
        """Bind a run's id to a definition's fingerprint, or find that it is bound to this one already.

        The first wins, also among processes that come at once; on the disk when this returns.

        Raises:
            RunBindingError: the id is bound to another fingerprint.
            LedgerError: it can't be written.
        """
        with self._database.reading() as connection:
            bound = find_run(connection, run_id)
        if bound is None:
            with self._database.writing() as connection:
                bound = bind_run(connection, run_id, fingerprint)
        refuse_other_definition(bound.fingerprint, fingerprint, run_id)

    def claim(self, request: ClaimRequest) -> Claim:
        """Claim the next round of a stage. It is on the disk, with its nonce, when this returns: then dispatch.

        Of several processes that come at once, one gets the round. The first claim of a run binds its package. A round
        that is found without a holder is marked as unknown on the way, so that its holder, should it come back, can't
        write any more.

        Raises:
            RunBindingError: the run is bound to another definition.
            PackageBindingError: the run is bound to another package.
            ClaimRefusedError: no round may be claimed now; see `rules.next_round`.
            LedgerError: it can't be written; nothing was claimed.
        """
        with self._database.writing() as connection:
            mark_lost(connection, request.run_id, request.stage)
        with self._database.writing() as connection:
            bound = bind_run(connection, request.run_id, request.fingerprint)
            refuse_other_definition(bound.fingerprint, request.fingerprint, request.run_id)
            rounds = read_rounds(connection, request.run_id, request.stage)
            first = not connection.execute("SELECT 1 FROM round WHERE run_id = ?", (request.run_id,)).fetchone()
            refuse_other_package(bound.package_digest, request, first=first)
            facts = [one.facts for one in rounds]
            number = refuse_claim(next_round(facts, request.max_rounds, request.content_digest), request)
            if first:
                connection.execute(
                    "UPDATE run SET package_digest = ? WHERE run_id = ?", (request.package_digest, request.run_id)
                )
            return insert_claim(connection, request, number)

    def dispatched(self, claim: Claim) -> None:
        """Enter that from now on something may reach the reviewer. Call it before the first byte leaves.

        Raises:
            FencedError: the round is no longer this claim's: dispatch nothing.
            LedgerError: it can't be written: dispatch nothing.
        """
        with self._database.writing() as connection:
            update(connection, claim, "dispatched", "state = 'dispatched'", (), where="state = 'claimed'")

    def head(self, claim: Claim, what: str, digest: str) -> None:
        """Enter the digest of something that was just recorded, as it happens: a call, an answer, a transcript.

        Raises:
            FencedError: the round is no longer this claim's.
            LedgerError: it can't be written.
        """
        body: dict[str, JSONValue] = {
            "at": now(),
            "digest": digest,
            "round": claim.round,
            "stage": claim.stage,
            "what": what,
        }
        with self._database.writing() as connection:
            refuse_late(connection, claim)
            append(connection, claim.run_id, "head", body)

    def seal(self, claim: Claim, *, evidence_digest: str, evidence_name: str, verdict: ReviewVerdict | None) -> None:
        """Enter the evidence's digest, before its file is put in place.

        Args:
            claim: the round.
            evidence_digest: over the exact stored bytes (`evidence.digest_of`).
            evidence_name: its file's name in the state directory's folder `evidence`.
            verdict: the reviewer's; a rejection that is entered stands, whatever comes next.

        Raises:
            FencedError: the round is no longer this claim's: write no file.
            LedgerError: it can't be written.
        """
        with self._database.writing() as connection:
            update(
                connection,
                claim,
                "sealed",
                "state = 'sealed', evidence_digest = ?, evidence_name = ?, verdict = ?",
                (evidence_digest, evidence_name, verdict),
                where="state = 'dispatched'",
            )

    def end(self, claim: Claim, state: RoundState, code: str, *, usage: Usage | None = None) -> None:
        """End a round.

        Args:
            claim: the round.
            state: `approved`, `rejected` and `blocked` only for a sealed one; `failed` or `unknown` at any time.
            code: the code behind it; empty with approved.
            usage: as the provider reported it; goes into the usage log.

        Raises:
            FencedError: the round is no longer this claim's, or not that far.
            LedgerError: it can't be written; the round will stand as unknown.
            ValueError: no end.
        """
        if state in GOING_ON or state == "abandoned":
            raise ValueError(f"{state} is no end that a holder can give a round")
        where = STILL_GOING if state in {"failed", "unknown"} else f"state = 'sealed' AND verdict = '{state}'"
        spent: JSONValue = None if usage is None else usage.as_json()
        with self._database.writing() as connection:
            update(connection, claim, "ended", "state = ?, code = ?", (state, code), where=where, usage=spent)

    def log_usage(self, run_id: str, what: str, code: str, usage: Usage | None = None) -> None:
        """Enter a use that is no round's end: a session that failed, a preflight.

        Raises:
            LedgerError: it can't be written.
        """
        spent: JSONValue = None if usage is None else usage.as_json()
        with self._database.writing() as connection:
            append(connection, run_id, "usage", {"at": now(), "code": code, "usage": spent, "what": what})

    def recover(self, run_id: str, stage: str, number: int, *, closed_as: Disposition, reason: str) -> Round:
        """An operator's word on a round that ended unclear, or on a rejection.

        It gives no approval and no evidence, and the round stays used up. An unclear round becomes failed or
        abandoned, and its holder, should it come back, can't write any more. A rejection stays a rejection; it no
        longer forbids asking again over the same bytes, and the gate shows the reason.

        Args:
            run_id: the run.
            stage: the stage.
            number: the round.
            closed_as: failed or abandoned.
            reason: at most 2,000 characters, not blank.

        Raises:
            RecoveryError: no such round, it goes on, it ended clearly otherwise, was closed before, or no reason.
            LedgerError: it can't be written.
        """
        with self._database.writing() as connection:
            rounds = read_rounds(connection, run_id, stage)
            found = next((one for one in rounds if one.facts.round == number), None)
            found = refuse_recovery(found, f"{run_id}, {stage}, round {number}", reason)
            rejected = found.stored_state == "rejected"
            state, code = ("rejected", "review_rejected") if rejected else (closed_as, "round_unknown")
            update(
                connection,
                claim_of(found),
                "recovered",
                "closed_as = ?, reason = ?, fence = ?, state = ?, code = ?",
                (closed_as, reason, latest(connection).seq + 1, state, code),
                where="closed_as IS NULL",
            )
            rounds = read_rounds(connection, run_id, stage)
            return next(one for one in rounds if one.facts.round == number)

    def run(self, run_id: str) -> Run | None:
        """What a run is bound to, or None for one that was never seen."""
        with self._database.reading() as connection:
            return find_run(connection, run_id)

    def runs(self) -> tuple[Run, ...]:
        """All runs, in the order in which they were bound."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT run_id, fingerprint, package_digest FROM run ORDER BY rowid")
            return tuple(Run(*row) for row in rows)

    def rounds(self, run_id: str) -> tuple[Round, ...]:
        """The rounds of a run, by stage and number; see `Round`.

        Raises:
            LedgerError: a row is not what its latest entry says: it was changed by another hand.
        """
        with self._database.reading() as connection:
            rounds = read_rounds(connection, run_id)
            refuse_changed_rows(connection, run_id)
            return rounds

    def entries(self, run_id: str) -> tuple[Entry, ...]:
        """The entries of a run, in order."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT seq, run_id, kind, body FROM entry WHERE run_id = ? ORDER BY seq", (run_id,)
            )
            return tuple(Entry(seq, run, kind, parse_strict(body.encode())) for seq, run, kind, body in rows)

    def latest(self) -> Head:
        """The latest entry: noted elsewhere, it shows later whether the ledger still holds it."""
        return self._database.head()

    def backup(self, target: Path) -> None:
        """Copy the ledger to a new file; see `Database.backup`."""
        self._database.backup(target)
