"""The one status and code that an evidence ends with, and the exit status that belongs to it.

Source: the contract, CLI: in a mixed set refused, else negative, else unknown.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from firsthand.errors import EXIT_GOOD, EXIT_STATUS_BY_CODE
from firsthand.records import Evidence
from firsthand.rules.acceptance import BASELINE_CODE, CLEANUP_CODE, acceptance
from firsthand.rules.facts import DefinitionFacts
from firsthand.rules.standing import latest_unmodified, standing_catches

EvidenceStatus: TypeAlias = Literal["passed", "failed", "refused", "unknown"]
Conclusion: TypeAlias = tuple[EvidenceStatus, str]

_NEGATIVE_VOIDS: Final = frozenset({"review_verification_source_drift", "review_verification_copy_drift"})


def evidence_status(evidence: Evidence, facts: DefinitionFacts) -> Conclusion:
    """Status and code of an evidence, from its records; the stored `status` and `code` are not looked at.

    The code is empty exactly with `passed`. `exit_status(code)` is what the process ends with.
    """
    match evidence.kind:
        case "check":
            return _negative(evidence) or _unknown(evidence, facts) or ("passed", "")
        case "mutate":
            return _mutate_status(evidence, facts)
        case "review":
            return _review_status(evidence, facts)


def exit_status(code: str) -> int:
    """Exit status of the process for a conclusion's code; the empty code is success.

    Raises:
        KeyError: the code is not in the table.
    """
    return EXIT_STATUS_BY_CODE[code] if code else EXIT_GOOD


def _negative(evidence: Evidence) -> Conclusion | None:
    """What is certainly bad in the runs: drift, or a check that is red on the unmodified files."""
    for code in evidence.voided:
        if code in _NEGATIVE_VOIDS:
            return "failed", code
    if any(run.status == "failed" for run in latest_unmodified(evidence.runs).values()):
        return "failed", BASELINE_CODE
    return None


def _unknown(evidence: Evidence, facts: DefinitionFacts) -> Conclusion | None:
    """What keeps the runs from proving anything: unclear ends, other voids, an inconclusive or missing check."""
    if any(run.command.outcome.cleanup == "unknown" for run in evidence.runs):
        return "unknown", CLEANUP_CODE
    if evidence.voided:
        code = evidence.voided[0]
        return "unknown", code if code == CLEANUP_CODE else "check_inconclusive"
    latest = latest_unmodified(evidence.runs)
    ran_all = evidence.kind != "check" or latest.keys() == {check.id for check in facts.checks}
    if not latest or not ran_all or any(run.status != "passed" for run in latest.values()):
        return "unknown", "check_inconclusive"
    return None


def _mutate_status(evidence: Evidence, facts: DefinitionFacts) -> Conclusion:
    verdicts = {mutation.verdict for mutation in evidence.mutations}
    if "not-applied" in verdicts:
        return "refused", "mutation_not_applied"
    negative = _negative(evidence)
    if negative is not None:
        return negative
    if verdicts & {"survived", "not-exercised"}:
        return "failed", "mutation_survived"
    unknown = _unknown(evidence, facts)
    if unknown is not None:
        return unknown
    catches = standing_catches(evidence.mutations, evidence.runs)
    if not catches or len(catches) != len(evidence.mutations):
        return "unknown", "mutation_inconclusive"
    return "passed", ""


def _review_status(evidence: Evidence, facts: DefinitionFacts) -> Conclusion:  # noqa: PLR0911 # one return a rule: it reads as the table that it is
    judgement = evidence.dispatch.judgement if evidence.dispatch is not None else None
    for code in evidence.voided:
        if code in _NEGATIVE_VOIDS or code == "isolation-breach":
            return "failed", code
    if judgement is not None and judgement.verdict == "rejected":
        return "failed", "review_rejected"
    if judgement is not None and judgement.verdict == "blocked":
        return "failed", "review_blocked"
    problems = acceptance(evidence, facts)
    if judgement is not None and any(problem.code == BASELINE_CODE for problem in problems):
        return "failed", BASELINE_CODE
    if any(problem.code == CLEANUP_CODE for problem in problems):
        return "unknown", CLEANUP_CODE
    if judgement is None:
        return "unknown", "round_unknown"
    return ("failed", "review_verification_evidence") if problems else ("passed", "")
