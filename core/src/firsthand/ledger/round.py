"""One round as a row of the ledger, what a claim asks for, and what it gives."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, cast

from firsthand.canonical import JSONValue, canonical_bytes, parse_strict
from firsthand.ledger.owner import Owner
from firsthand.residues import ProcessIdentity
from firsthand.rules import GOING_ON, Disposition, ReviewVerdict, RoundFacts, RoundState

COLUMNS: Final = (
    "run_id",
    "stage",
    "round",
    "nonce",
    "fence",
    "state",
    "verdict",
    "code",
    "manifest_digest",
    "content_digest",
    "tests",
    "evidence_digest",
    "evidence_name",
    "closed_as",
    "reason",
    "owner_pid",
    "owner_start",
    "owner_boot",
    "lease_until_ms",
)
SELECT: Final = f"SELECT {', '.join(COLUMNS)} FROM round"  # noqa: S608 - names of ours


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What a round is to be about. Everything in here was read and compared before the claim.

    Attributes:
        run_id: of the definition.
        fingerprint: of the definition.
        stage: one of the definition's.
        max_rounds: the definition's, for each stage.
        package_digest: of the package's documents in the manifest; None where the definition names none.
        manifest_digest: `Manifest.canonical_digest`.
        content_digest: `rules.content_digest` of the same manifest.
        tests: registered test files with their digests; None for one that is missing. No contents.
        lease_s: how long the round may take at most: the review's budget and time to seal.
    """

    run_id: str
    fingerprint: str
    stage: str
    max_rounds: int
    package_digest: str | None
    manifest_digest: str
    content_digest: str
    tests: Mapping[str, str | None]
    lease_s: float


@dataclass(frozen=True, slots=True)
class Claim:
    """A round that is this process's, committed. Only who has the claim can write on, and only until it is fenced.

    Attributes:
        run_id: the run.
        stage: the stage.
        round: from 1.
        nonce: random, minted for this round alone: 64 hexadecimal digits.
        fence: the claim's sequence number; a later holder's is higher, and then this one's writes are refused.
    """

    run_id: str
    stage: str
    round: int
    nonce: str
    fence: int


@dataclass(frozen=True, slots=True)
class Round:
    """One row.

    Attributes:
        run_id: the run.
        facts: what the rules judge; a round that goes on without a holder stands there as `unknown`.
        stored_state: as the row has it.
        tests: see `ClaimRequest`.
        evidence_name: name of the evidence's file in the state directory's folder `evidence`; None before sealing.
        owner: who claimed it.
        fence: who may write now.
    """

    run_id: str
    facts: RoundFacts
    stored_state: RoundState
    tests: Mapping[str, str | None]
    evidence_name: str | None
    owner: Owner
    fence: int


def read_rounds(connection: sqlite3.Connection, run_id: str, stage: str | None = None) -> tuple[Round, ...]:
    """The rounds of a run or of one of its stages, by stage and number."""
    condition = "WHERE run_id = ? AND (? IS NULL OR stage = ?) ORDER BY stage, round"
    return tuple(_round(row) for row in connection.execute(f"{SELECT} {condition}", (run_id, stage, stage)))


def row_as_json(connection: sqlite3.Connection, claim: Claim) -> dict[str, JSONValue]:
    """A round's whole row as an entry keeps it, but for the list of tests, of which the digest is kept."""
    row = connection.execute(
        f"{SELECT} WHERE run_id = ? AND stage = ? AND round = ?", (claim.run_id, claim.stage, claim.round)
    ).fetchone()
    return dict(zip(COLUMNS, row, strict=True))


def tests_text(tests: Mapping[str, str | None]) -> str:
    """The canonical JSON in which the row keeps the tests."""
    value: dict[str, JSONValue] = dict(tests)
    return canonical_bytes(value).decode()


def _round(row: tuple[object, ...]) -> Round:
    column = dict(zip(COLUMNS, row, strict=True))
    owner = Owner(
        ProcessIdentity(
            pid=cast("int", column["owner_pid"]),
            start=cast("str", column["owner_start"]),
            boot=cast("str", column["owner_boot"]),
        ),
        cast("int", column["lease_until_ms"]),
    )
    stored = cast("RoundState", column["state"])
    lost = stored in GOING_ON and not owner.holds()
    tests = parse_strict(cast("str", column["tests"]).encode())
    return Round(
        run_id=cast("str", column["run_id"]),
        facts=RoundFacts(
            stage=cast("str", column["stage"]),
            round=cast("int", column["round"]),
            nonce=cast("str", column["nonce"]),
            state="unknown" if lost else stored,
            verdict=cast("ReviewVerdict | None", column["verdict"]),
            code="round_unknown" if lost else cast("str", column["code"]),
            manifest_digest=cast("str", column["manifest_digest"]),
            content_digest=cast("str", column["content_digest"]),
            evidence_digest=cast("str | None", column["evidence_digest"]),
            closed_as=cast("Disposition | None", column["closed_as"]),
            reason=cast("str", column["reason"]),
        ),
        stored_state=stored,
        tests=MappingProxyType(cast("dict[str, str | None]", tests)),
        evidence_name=cast("str | None", column["evidence_name"]),
        owner=owner,
        fence=cast("int", column["fence"]),
    )
