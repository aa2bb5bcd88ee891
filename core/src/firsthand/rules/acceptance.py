"""Whether an approval may be accepted, from the evidence alone.

Source: the contract, Providers, preflight, review ("an approval is accepted only by rule"). One condition is not here,
because the records do not hold the transcript: that its tool uses equal the host's call log. Whoever reads the
transcript enters a breach into `voided`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from firsthand.records import Evidence
from firsthand.rules.facts import DefinitionFacts
from firsthand.rules.problem import Problem
from firsthand.rules.standing import latest_unmodified, standing_catches

EVIDENCE_CODE: Final = "review_verification_evidence"
BASELINE_CODE: Final = "review_verification_baseline_failed"
CLEANUP_CODE: Final = "review_verification_cleanup_unknown"
LIMIT_TOOL_CALLS: Final = 32
"""Calls that are served in one review; the next one is recorded as refused."""


def acceptance(evidence: Evidence, facts: DefinitionFacts) -> tuple[Problem, ...]:
    """Every reason against accepting an approval; empty means that it may be accepted.

    Args:
        evidence: the evidence of one review.
        facts: what `definition_facts` reads from `evidence.definition`.
    """
    return (
        *_judgement_problems(evidence),
        *_void_problems(evidence),
        *(() if facts.tool_less else _check_problems(evidence, facts)),
        *(() if facts.tool_less else _catch_problems(evidence, facts)),
        *_dispatch_problems(evidence, facts),
    )


def _judgement_problems(evidence: Evidence) -> Iterator[Problem]:
    judgement = evidence.dispatch.judgement if evidence.dispatch is not None else None
    if judgement is None:
        yield Problem(EVIDENCE_CODE, "dispatch.judgement", "the reviewer gave no judgement")
    elif judgement.verdict != "approved":
        yield Problem(EVIDENCE_CODE, "dispatch.judgement", f"the reviewer's verdict is {judgement.verdict}")


def _void_problems(evidence: Evidence) -> Iterator[Problem]:
    for position, code in enumerate(evidence.voided):
        yield Problem(code, f"voided[{position}]", "what was recorded before this counts no longer")
    for position, run in enumerate(evidence.runs):
        if run.command.outcome.cleanup == "unknown":
            yield Problem(CLEANUP_CODE, f"runs[{position}]", "the end of all its processes could not be established")


def _check_problems(evidence: Evidence, facts: DefinitionFacts) -> Iterator[Problem]:
    if evidence.execution == "none":
        yield Problem(EVIDENCE_CODE, "execution", "the definition registers checks, and nothing was executed")
    if not facts.checks:
        yield Problem(EVIDENCE_CODE, "definition", "no check is registered, and nothing verified is not verified")
    latest = latest_unmodified(evidence.runs)
    for check in facts.checks:
        run = latest.get(check.id)
        if run is None:
            yield Problem(EVIDENCE_CODE, check.id, "this check never ran on the unmodified files")
        elif run.status != "passed":
            message = f"its latest run on the unmodified files is {run.status} ({run.cause})"
            yield Problem(BASELINE_CODE, check.id, message)


def _catch_problems(evidence: Evidence, facts: DefinitionFacts) -> Iterator[Problem]:
    if not facts.mutation_paths:
        return
    present = {entry.path for entry in evidence.manifest.entries if entry.state == "present"}
    if not present.intersection(facts.mutation_paths):
        if evidence.stage != "root-cause":
            yield Problem(
                EVIDENCE_CODE, "manifest", "every mutation path is missing; only root-cause may lack them all"
            )
        return
    trusted = {check.id for check in facts.checks if check.runner != "exit" or check.trusts_exit_code}
    catches = standing_catches(evidence.mutations, evidence.runs)
    if not any(catch.mutation.check in trusted and catch.mutation.path in facts.mutation_paths for catch in catches):
        yield Problem(EVIDENCE_CODE, "mutations", "no mutation was detected by a check that counts and is still green")


def _dispatch_problems(evidence: Evidence, facts: DefinitionFacts) -> Iterator[Problem]:
    dispatch = evidence.dispatch
    if dispatch is None:
        yield Problem(EVIDENCE_CODE, "dispatch", "there was no dispatch")
        return
    expected_instances = 0 if facts.tool_less else 1
    if dispatch.server_instances != expected_instances:
        message = f"{dispatch.server_instances} server instances, {expected_instances} expected"
        yield Problem(EVIDENCE_CODE, "dispatch.serverInstances", message)
    served = 0
    for position, call in enumerate(dispatch.tool_calls):
        where = f"dispatch.toolCalls[{position}]"
        if call.call != position + 1:
            yield Problem(EVIDENCE_CODE, f"{where}.call", "the calls are not numbered without a gap")
        served += call.result != "refused"
        if position >= LIMIT_TOOL_CALLS and call.result != "refused":
            yield Problem(EVIDENCE_CODE, where, f"call {call.call} was served, at most {LIMIT_TOOL_CALLS} may be")
    if facts.tool_less and served:
        yield Problem(EVIDENCE_CODE, "dispatch.toolCalls", "a review without tools served tool calls")
