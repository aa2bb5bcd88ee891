"""The rules: pure functions over records, used live and by `verify` alike."""

from firsthand.rules.acceptance import LIMIT_TOOL_CALLS, acceptance
from firsthand.rules.conclusion import Conclusion, EvidenceStatus, evidence_status, exit_status
from firsthand.rules.facts import CheckFacts, DefinitionFacts, FactsError, definition_facts
from firsthand.rules.failure import LIMIT_FAILURES, ran_out, repeats_control, signature
from firsthand.rules.gate import (
    GOING_ON,
    Disposition,
    Requirement,
    ReviewVerdict,
    RoundFacts,
    RoundState,
    approval_problem,
    belonging_problems,
    changed_paths,
    content_digest,
    gate_conclusion,
    next_round,
    requirement_problems,
    standing_rejection,
)
from firsthand.rules.problem import Problem
from firsthand.rules.recount import record_problems
from firsthand.rules.runner import detect_runner, is_ordinary_failure, runner_of
from firsthand.rules.standing import is_unmodified, latest_unmodified, standing_catches, unprobed_paths, voids
from firsthand.rules.status import check_status, green_doubt, is_consistent
from firsthand.rules.verdict import (
    INTERRUPTIONS,
    LIMIT_SIDE_BYTES,
    REFUSALS,
    Restoration,
    control_shows,
    mutated_deadline_ms,
    mutated_deadline_s,
    mutation_verdict,
)

__all__ = [
    "GOING_ON",
    "INTERRUPTIONS",
    "LIMIT_FAILURES",
    "LIMIT_SIDE_BYTES",
    "LIMIT_TOOL_CALLS",
    "REFUSALS",
    "CheckFacts",
    "Conclusion",
    "DefinitionFacts",
    "Disposition",
    "EvidenceStatus",
    "FactsError",
    "Problem",
    "Requirement",
    "Restoration",
    "ReviewVerdict",
    "RoundFacts",
    "RoundState",
    "acceptance",
    "approval_problem",
    "belonging_problems",
    "changed_paths",
    "check_status",
    "content_digest",
    "control_shows",
    "definition_facts",
    "detect_runner",
    "evidence_status",
    "exit_status",
    "gate_conclusion",
    "green_doubt",
    "is_consistent",
    "is_ordinary_failure",
    "is_unmodified",
    "latest_unmodified",
    "mutated_deadline_ms",
    "mutated_deadline_s",
    "mutation_verdict",
    "next_round",
    "ran_out",
    "record_problems",
    "repeats_control",
    "requirement_problems",
    "runner_of",
    "signature",
    "standing_catches",
    "standing_rejection",
    "unprobed_paths",
    "voids",
]
