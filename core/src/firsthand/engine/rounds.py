"""One round: claim, dispatch, seal, end. Whatever happens in between, the ledger says what is known.

Source: the contract, Ledger and gate. What performs the dispatch comes as a callable, so that this file knows neither
provider nor tool server:

1. The round is claimed and on the disk, with its nonce, before anything else happens.
2. The dispatch enters that it begins (`OpenRound.dispatched`) before the first byte leaves.
3. It returns sealed evidence. Its digest and verdict are entered, then its file is put in place, then the round ends.
4. A failure before 2 ends the round as failed; one after it, or an interruption, as unknown. A kill leaves it as it
   stands, and whoever looks next finds that its holder is gone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from firsthand.definition import Definition, Stage, mutation_fault
from firsthand.errors import FirsthandError
from firsthand.evidence.package import package_digest
from firsthand.evidence.storing import write_sealed
from firsthand.evidence.verifying import verify
from firsthand.ledger import Claim, ClaimRequest, Ledger, Round
from firsthand.records import Evidence, Manifest, Usage
from firsthand.residues import StateDirectory
from firsthand.rules import Problem, ReviewVerdict, RoundState, content_digest

SEALING_TIME_S: Final = 600.0
"""What a round may take beyond the review's budget: last comparisons, sealing, signing."""


class RoundError(FirsthandError):
    """A round ended without a result that counts."""

    default_code = "round_unknown"


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What a dispatch brings back.

    Attributes:
        raw: the sealed file's exact bytes (`evidence.seal`).
        usage: as the provider reported it, for the usage log; None where it reported none.
    """

    raw: bytes
    usage: Usage | None = None


class OpenRound:
    """A round that was claimed: what its dispatch may know and must tell. Safe to use from any thread."""

    def __init__(self, ledger: Ledger, claim: Claim, changed_tests: tuple[str, ...]) -> None:
        self._ledger = ledger
        self._claim = claim
        self._begun = False
        self._entered = False
        self._lock = threading.Lock()
        self.changed_tests = changed_tests
        """Registered tests that differ from those that the stage before was reviewed with."""

    @property
    def stage(self) -> str:
        """Its stage."""
        return self._claim.stage

    @property
    def number(self) -> int:
        """From 1."""
        return self._claim.round

    @property
    def nonce(self) -> str:
        """Random, 64 hexadecimal digits; goes into dispatch and evidence."""
        return self._claim.nonce

    @property
    def begun(self) -> bool:
        """Whether `dispatched` was called."""
        return self._begun

    def dispatched(self) -> None:
        """Enter that the dispatch begins. Call it before the first byte leaves; again does nothing.

        Raises:
            FirsthandError: it can't be entered; dispatch nothing.
        """
        with self._lock:
            if self._entered:
                return
            # Set first: if the entry fails half way, the end is unclear and not failed.
            self._begun = True
            self._ledger.dispatched(self._claim)
            self._entered = True

    def head(self, what: str, digest: str) -> None:
        """Enter the digest of something that was just recorded: a call, the transcript, the answer.

        Raises:
            FirsthandError: it can't be entered, or the round was taken from this process: stop.
        """
        self._ledger.head(self._claim, what, digest)


PerformDispatch: TypeAlias = Callable[[OpenRound], Reviewed]
"""Dispatches one round and returns its sealed evidence, whatever the verdict. It calls `dispatched` first. An exception
means that there is no evidence."""


@dataclass(frozen=True, slots=True)
class EndedRound:
    """A round with its evidence.

    Attributes:
        number: from 1.
        state: what it ended as.
        code: the evidence's; empty with approved.
        evidence: verified.
        path: where it lies.
        sha256: its digest, which is the ledger's.
    """

    number: int
    state: RoundState
    code: str
    evidence: Evidence
    path: Path
    sha256: str


def claim_request(definition: Definition, manifest: Manifest, stage: Stage, *, budget_s: float) -> ClaimRequest:
    """What a claim asks for, from what was read.

    Args:
        definition: the run's.
        manifest: of the snapshot that will be reviewed; the source was just compared with it.
        stage: one of the definition's.
        budget_s: of the review, preflight's diagnosis included.
    """
    document = definition.document
    return ClaimRequest(
        run_id=document.run_id,
        fingerprint=definition.fingerprint,
        stage=stage,
        max_rounds=document.max_rounds,
        package_digest=package_digest(manifest, document),
        manifest_digest=manifest.canonical_digest(),
        content_digest=content_digest(manifest),
        tests=registered_tests(manifest),
        lease_s=budget_s + SEALING_TIME_S,
    )


def registered_tests(manifest: Manifest) -> dict[str, str | None]:
    """The registered files that are tests by their names, each with its digest, or None where it is missing."""
    faults = ((entry, mutation_fault(entry.path)) for entry in manifest.entries)
    return {entry.path: entry.sha256 for entry, fault in faults if fault is not None and fault[0] == "test-file"}


def changed_tests(
    rounds: tuple[Round, ...], stages: tuple[str, ...], stage: str, tests: Mapping[str, str | None]
) -> tuple[str, ...]:
    """Registered tests that differ from those of the latest round of the stage before; empty where there is none."""
    earlier = stages[: stages.index(stage)] if stage in stages else ()
    before = [one for one in rounds if earlier and one.facts.stage == earlier[-1]]
    if not before:
        return ()
    old = before[-1].tests
    return tuple(path for path in sorted({*old, *tests}) if old.get(path, "") != tests.get(path, ""))


def evidence_name(run_id: str, stage: str, number: int, nonce: str) -> str:
    """The name of a round's evidence in the state directory. The gate knows it again; see `engine.gating`."""
    return f"{run_id}-review-{stage}-{number:03d}-{nonce[:16]}.json"


def run_round(
    state: StateDirectory,
    ledger: Ledger,
    request: ClaimRequest,
    dispatch: PerformDispatch,
    *,
    stages: tuple[str, ...],
    out: Path | None = None,
) -> EndedRound:
    """Claim the next round of a stage, have it dispatched, and end it.

    Args:
        state: where the evidence goes; the gate reads it there.
        ledger: open.
        request: see `claim_request`.
        dispatch: called once, after the claim is on the disk; never again for the same round.
        stages: the definition's, in order.
        out: a second place for the evidence.

    Raises:
        FirsthandError: no round could be claimed (see `Ledger.claim`), or what the dispatch raised; the ledger then
            says that the round failed, or that its end is unknown.
        RoundError: the dispatch's evidence is not of this round or not valid, or the dispatch met a fault.
    """
    claim = ledger.claim(request)
    tests = changed_tests(ledger.rounds(request.run_id), stages, request.stage, request.tests)
    opened = OpenRound(ledger, claim, tests)
    try:
        reviewed = dispatch(opened)
        evidence, digest = _accepted(reviewed.raw, request, claim)
        name = evidence_name(claim.run_id, claim.stage, claim.round, claim.nonce)
        ledger.seal(claim, evidence_digest=digest, evidence_name=name, verdict=_verdict(evidence))
        path = state.evidence / name
        write_sealed(path, reviewed.raw)
        ended_as = _state(evidence)
        ledger.end(claim, ended_as, evidence.code, usage=reviewed.usage)
    except BaseException as error:
        _give_up(ledger, opened, claim, error)
        if isinstance(error, FirsthandError) or not isinstance(error, Exception):
            raise
        raise RoundError(
            f"round {claim.round} met a fault: {type(error).__name__}: {error}",
            where=f"{claim.run_id}, {claim.stage}",
            next_step="report the fault; see what is known with `firsthand runs show`",
        ) from error
    if out is not None:
        write_sealed(out, reviewed.raw)
    return EndedRound(claim.round, ended_as, evidence.code, evidence, path, digest)


def _give_up(ledger: Ledger, opened: OpenRound, claim: Claim, error: BaseException) -> None:
    """Enter that there is no result. Where even that fails, the round stands without a holder, which says the same."""
    code = error.code if isinstance(error, FirsthandError) else "round_unknown"
    with suppress(FirsthandError):
        if opened.begun:
            ledger.end(claim, "unknown", code)
        else:
            ledger.end(claim, "failed", code)


def _accepted(raw: bytes, request: ClaimRequest, claim: Claim) -> tuple[Evidence, str]:
    """The evidence and its digest, if it is valid and of this round and no other.

    Raises:
        RoundError: it is not.
    """
    found = verify(raw)
    evidence, digest = found.evidence, found.digest
    if evidence is None or digest is None:
        first = found.problems[0] if found.problems else Problem("evidence_invalid", "", "it is not valid")
        raise _not_of_this_round(first.where, first.message)
    expected = {
        "kind": (evidence.kind, "review"),
        "runId": (evidence.run_id, claim.run_id),
        "stage": (evidence.stage, claim.stage),
        "round": (evidence.round, claim.round),
        "nonce": (evidence.nonce, claim.nonce),
        "definitionDigest": (evidence.definition_digest, request.fingerprint),
        "manifestDigest": (evidence.manifest_digest, request.manifest_digest),
        "packageDigest": (evidence.package_digest, request.package_digest),
    }
    for where, (stands, wanted) in expected.items():
        if stands != wanted:
            raise _not_of_this_round(where, f"it is {stands}, and the claim says {wanted}")
    return evidence, digest


def _not_of_this_round(where: str, message: str) -> RoundError:
    return RoundError(
        f"the dispatch brought evidence that is not of this round: {message}",
        where=where,
        next_step="report this as a fault of the part that made it",
    )


def _verdict(evidence: Evidence) -> ReviewVerdict | None:
    judgement = evidence.dispatch.judgement if evidence.dispatch is not None else None
    return None if judgement is None else judgement.verdict


def _state(evidence: Evidence) -> RoundState:
    """What a round with this evidence ends as: approved only where the rules accept the approval."""
    if evidence.status == "passed":
        return "approved"
    if evidence.code == "review_rejected":
        return "rejected"
    if evidence.code == "review_blocked":
        return "blocked"
    return "unknown" if evidence.status == "unknown" else "failed"
