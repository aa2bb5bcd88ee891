from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable

import pytest

from firsthand.ledger import (
    ClaimRefusedError,
    FencedError,
    Ledger,
    PackageBindingError,
    RecoveryError,
    RunBindingError,
)
from firsthand.records import Usage
from firsthand.rules import RoundState
from ledger.desk import MANIFEST, OTHER_MANIFEST, asked, judged


def states(ledger: Ledger, stage: str = "final") -> list[RoundState]:
    return [one.facts.state for one in ledger.rounds("run-1") if one.facts.stage == stage]


def refused(ledger: Ledger, code: str, **changes: object) -> ClaimRefusedError:
    before = ledger.latest()
    with pytest.raises(ClaimRefusedError) as caught:
        ledger.claim(asked(**changes))
    assert caught.value.code == code
    assert caught.value.where.startswith("run-1")
    assert ledger.latest() == before
    return caught.value


def test_a_round_from_claim_to_approval(ledger: Ledger) -> None:
    claim = ledger.claim(asked())
    assert (claim.round, len(claim.nonce)) == (1, 64)
    assert states(ledger) == ["claimed"]
    ledger.dispatched(claim)
    assert states(ledger) == ["dispatched"]
    ledger.head(claim, "call", "c" * 64)
    ledger.seal(claim, evidence_digest="d" * 64, evidence_name="e.json", verdict="approved")
    assert states(ledger) == ["sealed"]
    ledger.end(claim, "approved", "")
    (one,) = ledger.rounds("run-1")
    assert (one.facts.state, one.facts.evidence_digest, one.evidence_name) == ("approved", "d" * 64, "e.json")
    assert one.tests == {"tests/test_value.py": "e" * 64}
    kinds = [entry.kind for entry in ledger.entries("run-1")]
    assert kinds == ["bound", "claimed", "dispatched", "head", "sealed", "ended"]


def test_a_round_that_goes_on_is_not_claimed_beside(ledger: Ledger) -> None:
    claim = ledger.claim(asked())
    refused(ledger, "round_taken")
    ledger.dispatched(claim)
    refused(ledger, "round_taken")
    ledger.seal(claim, evidence_digest="d" * 64, evidence_name="e.json", verdict="approved")
    refused(ledger, "round_taken")
    # Another stage and another run are not held up.
    ledger.claim(asked(stage="root-cause"))
    ledger.claim(asked(run_id="run-2"))


@pytest.mark.parametrize("end", ["approved", "rejected", "blocked", "failed", "unknown"])
def test_every_end_consumes_its_round(ledger: Ledger, end: RoundState) -> None:
    for number in range(1, 4):
        claim = ledger.claim(asked(max_rounds=3, content_digest=str(number) * 64))
        assert claim.round == number
        if end in {"failed", "unknown"}:
            ledger.end(claim, end, "round_unknown")
        else:
            judged(ledger, claim, end)  # type: ignore[arg-type] # the verdicts are left
        if end == "unknown":
            ledger.recover("run-1", "final", number, closed_as="abandoned", reason="lost the line")
    refused(ledger, "rounds_exhausted", max_rounds=3)
    assert ledger.claim(asked(stage="root-cause", max_rounds=3)).round == 1


def test_an_unknown_end_stops_the_stage_until_an_operator_says_what_becomes_of_it(ledger: Ledger) -> None:
    claim = ledger.claim(asked())
    ledger.dispatched(claim)
    ledger.end(claim, "unknown", "round_unknown")
    assert "runs recover" in refused(ledger, "round_unknown").next_step
    refused(ledger, "round_unknown", content_digest=OTHER_MANIFEST)
    found = ledger.recover("run-1", "final", 1, closed_as="failed", reason="the machine lost power")
    assert (found.facts.state, found.facts.closed_as) == ("failed", "failed")
    assert found.facts.reason == "the machine lost power"
    assert found.facts.evidence_digest is None
    assert ledger.claim(asked()).round == 2


def test_a_rejection_is_not_overruled_by_asking_again(ledger: Ledger) -> None:
    judged(ledger, ledger.claim(asked()), "rejected", "review_rejected")
    refused(ledger, "review_rejected")
    judged(ledger, ledger.claim(asked(content_digest=OTHER_MANIFEST)), "approved")
    refused(ledger, "review_rejected", content_digest=MANIFEST)
    # A hard link changes the manifest's digest, and nothing that was reviewed.
    refused(ledger, "review_rejected", manifest_digest="1" * 64)
    closed = ledger.recover("run-1", "final", 1, closed_as="abandoned", reason="it judged another requirement")
    assert (closed.facts.state, closed.facts.closed_as) == ("rejected", "abandoned")
    assert ledger.claim(asked()).round == 3


def test_a_rejection_that_was_sealed_and_then_lost_is_a_rejection(ledger: Ledger) -> None:
    claim = ledger.claim(asked())
    ledger.dispatched(claim)
    ledger.seal(claim, evidence_digest="d" * 64, evidence_name="e.json", verdict="rejected")
    ledger.end(claim, "unknown", "round_unknown")
    (one,) = ledger.rounds("run-1")
    assert one.facts.verdict == "rejected"
    refused(ledger, "round_unknown")


def test_a_blocked_review_may_be_asked_again(ledger: Ledger) -> None:
    judged(ledger, ledger.claim(asked()), "blocked", "review_blocked")
    assert ledger.claim(asked()).round == 2


def test_the_first_round_binds_the_package(ledger: Ledger) -> None:
    judged(ledger, ledger.claim(asked(stage="root-cause")), "approved")
    before = ledger.latest()
    for package in ("q" * 64, None):
        with pytest.raises(PackageBindingError) as caught:
            ledger.claim(asked(package_digest=package))
        assert caught.value.code == "review_verification_package_binding"
        assert caught.value.exit_status == 3
    assert ledger.latest() == before
    ledger.claim(asked())


def test_a_run_without_documents_is_bound_to_having_none(ledger: Ledger) -> None:
    judged(ledger, ledger.claim(asked(package_digest=None)), "approved")
    with pytest.raises(PackageBindingError):
        ledger.claim(asked())
    ledger.claim(asked(package_digest=None))


def test_another_definition_claims_nothing(ledger: Ledger) -> None:
    ledger.claim(asked())
    with pytest.raises(RunBindingError):
        ledger.claim(asked(fingerprint="0" * 64, stage="root-cause"))
    assert len(ledger.rounds("run-1")) == 1


def test_a_sub_run_inherits_nothing(ledger: Ledger) -> None:
    judged(ledger, ledger.claim(asked(run_id="run-1")), "approved")
    assert ledger.rounds("run-1-qa") == ()
    claim = ledger.claim(asked(run_id="run-1-qa", fingerprint="0" * 64, package_digest="q" * 64))
    assert claim.round == 1


@pytest.mark.parametrize("reason", ["", "  \n", "x" * 2001], ids=["empty", "blank", "too long"])
def test_a_recovery_needs_a_reason(ledger: Ledger, reason: str) -> None:
    ledger.end(ledger.claim(asked()), "unknown", "round_unknown")
    with pytest.raises(RecoveryError, match="reason"):
        ledger.recover("run-1", "final", 1, closed_as="failed", reason=reason)


def test_what_is_not_unclear_is_not_recovered(ledger: Ledger) -> None:
    claim = ledger.claim(asked())
    with pytest.raises(RecoveryError, match="goes on"):
        ledger.recover("run-1", "final", 1, closed_as="failed", reason="impatience")
    judged(ledger, claim, "approved")
    with pytest.raises(RecoveryError, match="ended clearly"):
        ledger.recover("run-1", "final", 1, closed_as="failed", reason="regret")
    with pytest.raises(RecoveryError, match="no such round"):
        ledger.recover("run-1", "final", 2, closed_as="failed", reason="which?")
    ledger.end(ledger.claim(asked()), "unknown", "round_unknown")
    ledger.recover("run-1", "final", 2, closed_as="failed", reason="once")
    with pytest.raises(RecoveryError, match="closed before"):
        ledger.recover("run-1", "final", 2, closed_as="abandoned", reason="twice")


@pytest.mark.parametrize("change", [{"fence": 99}, {"nonce": "0" * 64}, {"round": 2}, {"stage": "root-cause"}])
def test_only_the_claim_writes(ledger: Ledger, change: dict[str, object]) -> None:
    claim = ledger.claim(asked())
    forged = dataclasses.replace(claim, **change)  # type: ignore[arg-type] # one field at a time
    before = ledger.latest()
    writes: tuple[Callable[[], None], ...] = (
        lambda: ledger.dispatched(forged),
        lambda: ledger.head(forged, "call", "c" * 64),
        lambda: ledger.end(forged, "failed", ""),
    )
    for write in writes:
        with pytest.raises(FencedError) as caught:
            write()
        assert caught.value.code == "round_unknown"
    assert ledger.latest() == before


def test_a_round_takes_its_steps_in_order(ledger: Ledger) -> None:
    claim = ledger.claim(asked())
    with pytest.raises(FencedError):
        ledger.seal(claim, evidence_digest="d" * 64, evidence_name="e", verdict="approved")
    with pytest.raises(FencedError):
        ledger.end(claim, "approved", "")
    ledger.dispatched(claim)
    with pytest.raises(FencedError):
        ledger.dispatched(claim)
    ledger.seal(claim, evidence_digest="d" * 64, evidence_name="e", verdict="rejected")
    with pytest.raises(FencedError):
        ledger.end(claim, "approved", "")  # its verdict was entered, and it was another
    ledger.end(claim, "rejected", "review_rejected")
    with pytest.raises(FencedError):
        ledger.head(claim, "call", "c" * 64)
    for state in ("claimed", "dispatched", "sealed", "abandoned"):
        with pytest.raises(ValueError, match="no end"):
            ledger.end(claim, state, "")


def test_the_usage_log_keeps_failed_ends_too(ledger: Ledger) -> None:
    spent = Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_creation_tokens=4, cost_usd="0.1")
    claim = ledger.claim(asked())
    ledger.dispatched(claim)
    ledger.end(claim, "unknown", "review_verification_cleanup_unknown", usage=spent)
    ledger.log_usage("run-1", "preflight", "", spent)
    ended, logged = ledger.entries("run-1")[-2:]
    assert isinstance(ended.body, dict)
    assert isinstance(logged.body, dict)
    assert ended.body["usage"] == logged.body["usage"] == spent.as_json()
    assert logged.kind == "usage"


def test_threads_may_share_a_ledger(ledger: Ledger) -> None:
    claim = ledger.claim(asked())
    ledger.dispatched(claim)

    def enter() -> None:
        for _ in range(20):
            ledger.head(claim, "call", "c" * 64)

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(entry.kind == "head" for entry in ledger.entries("run-1")) == 80
