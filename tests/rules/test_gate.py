"""The gate's rules on hand-made rounds."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.builder import FILES, entry
from evidence.reviews import review_evidence, tool_less_evidence
from firsthand.errors import EXIT_STATUS_BY_CODE
from firsthand.records import Isolation, Manifest
from firsthand.rules import (
    GOING_ON,
    Problem,
    RoundFacts,
    RoundState,
    approval_problem,
    belonging_problems,
    changed_paths,
    content_digest,
    exit_status,
    gate_conclusion,
    next_round,
    requirement_problems,
    standing_rejection,
)

STATES: tuple[RoundState, ...] = get_args(RoundState)
ONE, TWO = "1" * 64, "2" * 64


def fact(state: RoundState = "approved", number: int = 1, **changes: Any) -> RoundFacts:
    verdict = state if state in {"approved", "rejected", "blocked"} else None
    fields: dict[str, Any] = {
        "stage": "final",
        "round": number,
        "nonce": f"{number:064}",
        "state": state,
        "verdict": verdict,
        "code": "",
        "manifest_digest": ONE,
        "content_digest": ONE,
        "evidence_digest": None,
        "closed_as": None,
        "reason": "",
    }
    return RoundFacts(**(fields | changes))


def refused(rounds: list[RoundFacts], content: str = ONE, max_rounds: int = 5) -> str:
    answer = next_round(rounds, max_rounds, content)
    assert isinstance(answer, Problem)
    assert answer.code in EXIT_STATUS_BY_CODE
    return answer.code


def test_rounds_are_numbered_from_1_and_every_end_counts() -> None:
    assert next_round([], 1, ONE) == 1
    for state in ("approved", "blocked", "failed", "abandoned"):
        assert next_round([fact(state)], 2, ONE) == 2
        assert refused([fact(state)], max_rounds=1) == "rounds_exhausted"
    assert refused([], max_rounds=0) == "rounds_exhausted"


@pytest.mark.parametrize("state", sorted(GOING_ON))
def test_nothing_is_claimed_beside_a_round_that_goes_on(state: RoundState) -> None:
    assert refused([fact(state)]) == "round_taken"
    assert refused([fact(state), fact("approved", 2)], TWO) == "round_taken"


def test_nothing_is_claimed_after_an_unclear_end() -> None:
    assert refused([fact("unknown")], TWO) == "round_unknown"
    assert refused([fact("unknown"), fact("approved", 2)], TWO) == "round_unknown"


def test_a_rejection_stands_over_its_content_until_it_is_closed() -> None:
    rejected = fact("rejected", manifest_digest=TWO)
    assert refused([rejected]) == "review_rejected"
    assert refused([rejected, fact("approved", 2, content_digest=TWO)]) == "review_rejected"
    assert next_round([rejected], 5, TWO) == 2
    assert next_round([fact("rejected", closed_as="failed", reason="r")], 5, ONE) == 2
    # A rejection in evidence that does not count otherwise is one all the same.
    assert refused([fact("failed", verdict="rejected")]) == "review_rejected"


def test_no_rejection_stands_where_none_was() -> None:
    assert standing_rejection([fact("approved"), fact("blocked"), fact("unknown")], ONE) is None


def test_only_the_latest_approval_is_one() -> None:
    assert approval_problem([fact("approved")]) is None
    assert approval_problem([fact("blocked"), fact("approved", 2)]) is None
    assert approval_problem([]) is not None
    for state in STATES:
        if state != "approved":
            problem = approval_problem([fact("approved"), fact(state, 2)])
            assert problem is not None
            assert exit_status(problem.code) in {1, 4}


@pytest.mark.parametrize("state", ["unknown", *sorted(GOING_ON)])
def test_an_open_round_is_unknown(state: RoundState) -> None:
    problem = approval_problem([fact(state)])
    assert problem is not None
    assert problem.code == "round_unknown"


def test_an_approval_over_rejected_bytes_is_none() -> None:
    problem = approval_problem([fact("rejected"), fact("approved", 2)])
    assert problem is not None
    assert problem.code == "review_rejected"
    assert approval_problem([fact("rejected", content_digest=TWO), fact("approved", 2)]) is None
    closed = fact("rejected", closed_as="abandoned", reason="r")
    assert approval_problem([closed, fact("approved", 2)]) is None


def test_a_failed_round_keeps_its_negative_code_and_no_other() -> None:
    for code, expected in (
        ("isolation-breach", "isolation-breach"),
        ("tool_preflight_missing", "review_verification_evidence"),
        ("round_unknown", "review_verification_evidence"),
        ("", "review_verification_evidence"),
    ):
        problem = approval_problem([fact("failed", code=code)])
        assert problem is not None
        assert problem.code == expected


def test_a_link_count_is_no_content() -> None:
    manifest = Manifest(entries=tuple(entry(path, raw) for path, raw in FILES.items()))
    first = manifest.entries[0]

    def changed(**changes: Any) -> Manifest:
        return Manifest(entries=(first.model_copy(update=changes), *manifest.entries[1:]))

    assert content_digest(changed(links=2)) == content_digest(manifest)
    assert changed(links=2).canonical_digest() != manifest.canonical_digest()
    others = [changed(mode=0o755), changed(sha256="0" * 64), changed(path="other"), changed(size=1)]
    others.append(Manifest(entries=(entry(first.path, None), *manifest.entries[1:])))
    others.append(Manifest(entries=manifest.entries[::-1]))
    digests = {content_digest(other) for other in others}
    assert len(digests) == len(others)
    assert content_digest(manifest) not in digests


def test_changed_paths() -> None:
    before = Manifest(entries=(entry("a", b"1"), entry("b", b"1"), entry("c", None), entry("d", b"1", 0o644)))
    after = Manifest(entries=(entry("a", b"1"), entry("b", b"2"), entry("c", b""), entry("d", b"1", 0o755)))
    assert changed_paths(before, after) == ("b", "c", "d")
    assert changed_paths(before, before) == ()
    assert changed_paths(before, Manifest(entries=(*before.entries, entry("e", b"")))) == ("e",)
    assert changed_paths(before, Manifest(entries=before.entries[1:])) == ("a",)


EVIDENCE = review_evidence()
MATCHING = fact(nonce=EVIDENCE.nonce, manifest_digest=EVIDENCE.manifest_digest)


def belonging(**changes: Any) -> list[str]:
    bound = {
        "run_id": EVIDENCE.run_id,
        "fingerprint": EVIDENCE.definition_digest,
        "package_digest": EVIDENCE.package_digest,
    }
    evidence = EVIDENCE.model_copy(update={name: value for name, value in changes.items() if name not in bound})
    bound |= {name: value for name, value in changes.items() if name in bound}
    return [problem.code for problem in belonging_problems(evidence, MATCHING, **bound)]  # type: ignore[arg-type] # the test's


def test_evidence_of_this_round_belongs() -> None:
    assert belonging() == []


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "check"},
        {"run_id": "other"},
        {"stage": "root-cause"},
        {"round": 2},
        {"nonce": ONE},
        {"fingerprint": ONE},
        {"manifest_digest": ONE},
        {"status": "failed"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_evidence_of_anything_else_does_not(changes: dict[str, Any]) -> None:
    assert belonging(**changes) == ["evidence_invalid"]


def test_another_package_is_refused() -> None:
    assert belonging(package_digest=None) == ["review_verification_package_binding"]


def required(*requirements: Any, signed: bool = False, tool_less: bool = False, **changes: Any) -> list[str]:
    evidence = tool_less_evidence(**changes) if tool_less else review_evidence(**changes)
    return [problem.where for problem in requirement_problems(evidence, requirements, signed=signed)]


def test_requirements() -> None:
    everything = ("os-sandbox", "execution", "probed", "signed")
    confined = Isolation(level="os-sandbox", reason=None, auth="provider-env")
    assert required(*everything, signed=True, isolation=confined) == []
    assert required(*everything) == ["isolation.level", "envelope"]
    assert required("os-sandbox", isolation=None) == ["isolation.level"]
    assert required(*everything, tool_less=True) == ["isolation.level", "execution", "mutations", "envelope"]
    assert required("execution", runs=()) == ["execution"]
    assert required("probed", unprobed=("src/value.py",)) == ["unprobed"]
    assert required("probed", mutations=()) == ["mutations"]
    assert required() == required(tool_less=True) == []


def test_a_root_cause_with_no_implementation_yet_can_not_be_probed() -> None:
    entries = tuple(entry(path, None if path == "src/value.py" else raw) for path, raw in FILES.items())
    bare: dict[str, Any] = {"mutations": (), "manifest": Manifest(entries=entries)}
    assert required("probed", stage="root-cause", **bare) == []
    assert required("probed", stage="final", **bare) == ["mutations"]
    assert required("probed", stage="root-cause", mutations=()) == ["mutations"]
    assert required("probed", stage="root-cause", definition="{", **bare) == ["mutations"]


CODES = st.lists(st.sampled_from(sorted(EXIT_STATUS_BY_CODE)), max_size=6)


@given(CODES)
def test_refused_else_negative_else_unknown(codes: list[str]) -> None:
    status, code = gate_conclusion(Problem(one, "", "") for one in codes)
    exits = {EXIT_STATUS_BY_CODE[one] for one in codes}
    expected = next(
        (name for name, some in (("refused", {2, 3}), ("failed", {1}), ("unknown", {4})) if some & exits), "passed"
    )
    assert status == expected
    assert (code == "") == (not codes)
    assert not codes or code in codes
