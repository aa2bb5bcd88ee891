"""Rounds and the gate: which round may be dispatched next, and whether what stands in the ledger is green.

Source: the contract, Ledger and gate. Pure: the ledger asks before it claims, the gate asks before it answers, and
both ask here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from firsthand.canonical import canonical_digest
from firsthand.errors import EXIT_NEGATIVE, EXIT_REFUSED, EXIT_STATUS_BY_CODE, EXIT_UNKNOWN, EXIT_USAGE
from firsthand.records import Evidence, Manifest
from firsthand.rules.acceptance import EVIDENCE_CODE
from firsthand.rules.conclusion import Conclusion, EvidenceStatus
from firsthand.rules.facts import FactsError, definition_facts
from firsthand.rules.problem import Problem
from firsthand.rules.standing import standing_catches

RoundState: TypeAlias = Literal[
    "claimed", "dispatched", "sealed", "approved", "rejected", "blocked", "failed", "abandoned", "unknown"
]
"""`claimed`: nothing was sent yet. `dispatched`: it may have been. `sealed`: the evidence's digest is entered, the end
is not. These three are rounds that go on. `failed`: no judgement counts, for a known reason. `abandoned`: closed so by
the operator. `unknown`: it ended unclear."""

ReviewVerdict: TypeAlias = Literal["approved", "rejected", "blocked"]
Disposition: TypeAlias = Literal["failed", "abandoned"]
"""What an operator may make of a round. Never approved."""

Requirement: TypeAlias = Literal["os-sandbox", "execution", "probed", "signed"]

GOING_ON: Final[frozenset[RoundState]] = frozenset({"claimed", "dispatched", "sealed"})

_STATUS_BY_EXIT: Final[dict[int, EvidenceStatus]] = {
    EXIT_USAGE: "refused",
    EXIT_REFUSED: "refused",
    EXIT_NEGATIVE: "failed",
    EXIT_UNKNOWN: "unknown",
}
_WORST_FIRST: Final[tuple[EvidenceStatus, ...]] = ("refused", "failed", "unknown")


@dataclass(frozen=True, slots=True)
class RoundFacts:
    """One round as the ledger knows it.

    Attributes:
        stage: its stage.
        round: from 1.
        nonce: minted at its claim.
        state: a round that goes on with nobody who could end it stands here as `unknown`.
        verdict: what the reviewer judged, as far as it was entered.
        code: the code behind a state other than approved; may be empty.
        manifest_digest: of the bytes that the round is about.
        content_digest: `content_digest` of the same manifest.
        evidence_digest: entered when the evidence was sealed.
        closed_as: what an operator made of it.
        reason: the operator's.
    """

    stage: str
    round: int
    nonce: str
    state: RoundState
    verdict: ReviewVerdict | None
    code: str
    manifest_digest: str
    content_digest: str
    evidence_digest: str | None
    closed_as: Disposition | None
    reason: str


def content_digest(manifest: Manifest) -> str:
    """Digest of what a reviewer could judge: paths, presence, modes and bytes. Link counts are left out.

    A hard link to a registered file changes the manifest's digest and nothing that was reviewed; it must not make a
    rejection a thing of the past.
    """
    return canonical_digest(
        [[entry.path, entry.state, entry.mode, entry.size, entry.sha256] for entry in manifest.entries]
    )


def standing_rejection(rounds: Iterable[RoundFacts], content: str) -> RoundFacts | None:
    """The first rejection over this content that no operator has closed.

    Args:
        rounds: of one stage.
        content: `content_digest` of the manifest in question.
    """
    return next(
        (
            one
            for one in rounds
            if one.verdict == "rejected" and one.content_digest == content and one.closed_as is None
        ),
        None,
    )


def next_round(rounds: Sequence[RoundFacts], max_rounds: int, content: str) -> int | Problem:
    """The number of the round that may be claimed now, or why none may.

    Every round counts, however it ended. Nothing is claimed beside a round that goes on, nor after an unclear end
    that no operator has disposed of: what was dispatched there may have been a rejection.

    Args:
        rounds: all rounds of one stage, in their order.
        max_rounds: as the definition gives it, for each stage.
        content: `content_digest` of the manifest that would be reviewed.
    """
    for one in rounds:
        where = f"{one.stage}, round {one.round}"
        if one.state in GOING_ON:
            return Problem("round_taken", where, "this round goes on in another process")
        if one.state == "unknown":
            return Problem("round_unknown", where, "this round ended unclear, and nobody has disposed of it")
    if len(rounds) >= max_rounds:
        where = f"{rounds[0].stage}: maxRounds" if rounds else "maxRounds"
        return Problem("rounds_exhausted", where, f"all {max_rounds} rounds of this stage are used up")
    rejection = standing_rejection(rounds, content)
    if rejection is not None:
        where = f"{rejection.stage}, round {rejection.round}"
        return Problem("review_rejected", where, "these very bytes were rejected; asking again overrules nothing")
    return max((one.round for one in rounds), default=0) + 1


def approval_problem(  # noqa: PLR0911 # one return a rule: it reads as the table that it is
    rounds: Sequence[RoundFacts],
) -> Problem | None:
    """Why the latest round of a stage, all of whose rounds are given in order, is no approval that counts, or None."""
    if not rounds:
        return Problem(EVIDENCE_CODE, "", "no round of this stage was ever claimed")
    latest = rounds[-1]
    where = f"round {latest.round}"
    match latest.state:
        case "approved":
            pass
        case "rejected":
            return Problem("review_rejected", where, "the reviewer rejected it")
        case "blocked":
            return Problem("review_blocked", where, "the reviewer could not judge it")
        case "failed" | "abandoned":
            code = latest.code if EXIT_STATUS_BY_CODE.get(latest.code) == EXIT_NEGATIVE else EVIDENCE_CODE
            closed = f": closed by the operator ({latest.reason})" if latest.closed_as else ""
            return Problem(code, where, f"it {_PAST[latest.state]}{closed}")
        case "unknown":
            return Problem("round_unknown", where, "it ended unclear")
        case "claimed" | "dispatched" | "sealed":
            return Problem("round_unknown", where, "it goes on")
    rejection = standing_rejection(rounds, latest.content_digest)
    if rejection is None:
        return None
    message = f"round {rejection.round} rejected the same bytes, and no operator has closed it"
    return Problem("review_rejected", where, message)


_PAST: Final = {"failed": "failed", "abandoned": "was abandoned"}


def belonging_problems(
    evidence: Evidence, latest: RoundFacts, *, run_id: str, fingerprint: str, package_digest: str | None
) -> Iterator[Problem]:
    """What shows that valid evidence is not the evidence of this round.

    Args:
        evidence: verified; its digest is the ledger's.
        latest: the round that it should be of.
        run_id: of the definition at hand.
        fingerprint: of the definition at hand.
        package_digest: what the run's first round bound.
    """
    expected: tuple[tuple[str, object, object], ...] = (
        ("kind", evidence.kind, "review"),
        ("runId", evidence.run_id, run_id),
        ("stage", evidence.stage, latest.stage),
        ("round", evidence.round, latest.round),
        ("nonce", evidence.nonce, latest.nonce),
        ("definitionDigest", evidence.definition_digest, fingerprint),
        ("manifestDigest", evidence.manifest_digest, latest.manifest_digest),
        ("status", evidence.status, "passed"),
    )
    for where, found, wanted in expected:
        if found != wanted:
            yield Problem("evidence_invalid", where, f"it is {found}, and the ledger's round says {wanted}")
    if evidence.package_digest != package_digest:
        message = "the package differs from the one that the run's first round bound"
        yield Problem("review_verification_package_binding", "packageDigest", message)


def requirement_problems(
    evidence: Evidence, requirements: Collection[Requirement], *, signed: bool
) -> Iterator[Problem]:
    """Which of the caller's further demands the evidence of one stage does not meet.

    Args:
        evidence: verified.
        requirements: `os-sandbox`: the reviewer's own process was confined. `execution`: checks ran. `probed`: each
            mutation path that was present has a standing catch, and there is at least one (in `root-cause` only where
            a path was present). `signed`: a trusted key signed.
        signed: whether one did.
    """
    if "os-sandbox" in requirements and (evidence.isolation is None or evidence.isolation.level != "os-sandbox"):
        level = "none" if evidence.isolation is None else evidence.isolation.level
        yield Problem(EVIDENCE_CODE, "isolation.level", f"os-sandbox is required, and it is {level}")
    if "execution" in requirements and (evidence.execution != "sandboxed" or not evidence.runs):
        yield Problem(EVIDENCE_CODE, "execution", "execution is required, and no check ran")
    if "probed" in requirements:
        if evidence.unprobed:
            listed = ", ".join(evidence.unprobed)
            yield Problem(EVIDENCE_CODE, "unprobed", f"probed is required, and without a catch are: {listed}")
        elif not standing_catches(evidence.mutations, evidence.runs) and not _exempt(evidence):
            yield Problem(EVIDENCE_CODE, "mutations", "probed is required, and no mutation was caught")
    if "signed" in requirements and not signed:
        yield Problem(EVIDENCE_CODE, "envelope", "signed is required, and no trusted key signed it")


def _exempt(evidence: Evidence) -> bool:
    """Before the work, a root cause may be judged with no implementation there yet that could be broken."""
    if evidence.stage != "root-cause":
        return False
    try:
        paths = definition_facts(evidence.definition).mutation_paths
    except FactsError:
        return False
    entries = [evidence.manifest.entry(path) for path in paths]
    return bool(paths) and all(entry is not None and entry.state == "missing" for entry in entries)


def changed_paths(before: Manifest, after: Manifest) -> tuple[str, ...]:
    """Registered paths whose bytes, mode or presence differ, in the order of `before`."""

    def seen(manifest: Manifest) -> dict[str, tuple[object, ...]]:
        return {entry.path: (entry.state, entry.mode, entry.sha256) for entry in manifest.entries}

    old, new = seen(before), seen(after)
    return tuple(path for path in (*old, *(path for path in new if path not in old)) if old.get(path) != new.get(path))


def gate_conclusion(problems: Iterable[Problem]) -> Conclusion:
    """Status and code of a set of problems: refused, else negative, else unknown; nothing wrong is passed.

    The code is that of the first problem of the worst kind; `exit_status(code)` is what the process ends with.
    """
    found = [(_STATUS_BY_EXIT[EXIT_STATUS_BY_CODE[problem.code]], problem.code) for problem in problems]
    for worst in _WORST_FIRST:
        for status, code in found:
            if status == worst:
                return worst, code
    return "passed", ""
