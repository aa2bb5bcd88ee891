"""`firsthand review`."""

from __future__ import annotations

from pathlib import Path

from firsthand.canonical import JSONValue
from firsthand.cli.commands.check import told_outcome, told_tests
from firsthand.cli.output import answers, end, lines, print_json, table
from firsthand.cli.progress import watched
from firsthand.engine.reviewing import Reviewing, run_review
from firsthand.records import Evidence
from firsthand.rules import acceptance, definition_facts


def run(
    config: Path,
    review_file: Path,
    stage: str,
    out: Path | None,
    sign: Path | None,
    state: Path | None,
    *,
    as_json: bool,
) -> None:
    """Dispatch one round, show what came of it, end with the contract's exit status."""
    with watched(quiet=as_json) as (line, watching):
        reviewing = run_review(
            config,
            review_file,
            stage,
            state_path=state,
            out=out,
            key=sign,
            observers=watching,
            progress=line.probe,
        )
    if as_json:
        print_json(_answer(reviewing))
    else:
        show(reviewing)
    end(reviewing.sealed.exit_status)


def show(reviewing: Reviewing) -> None:
    """What the host saw, what the model said, and which of the two counts."""
    evidence = reviewing.sealed.evidence
    dispatch = evidence.dispatch
    assert dispatch is not None  # noqa: S101 # the evidence of a review always has one
    console = answers()
    calls = [
        (str(call.call), call.tool, call.arguments, call.result, " ".join(map(str, call.runs)) or "-")
        for call in dispatch.tool_calls
    ]
    console.print(table(("CALL", "TOOL", "ARGUMENTS", "RESULT", "RUNS"), calls))
    runs = [
        (str(one.run), one.check_id, one.purpose, one.status, told_outcome(one.command.outcome), told_tests(one))
        for one in evidence.runs
    ]
    if runs:
        console.print()
        console.print(table(("RUN", "CHECK", "PURPOSE", "STATUS", "OUTCOME", "TESTS"), runs))
    console.print()
    for mutation in evidence.mutations:
        console.print(lines(f"mutation in {mutation.mutation.path}: {mutation.verdict} ({mutation.cause})"))
    _show_judgement(evidence)
    if reviewing.failure is not None:
        console.print(lines(f"no review: {reviewing.failure.kind}: {reviewing.failure.detail}"))
    if dispatch.unread:
        console.print(lines(f"not read whole: {', '.join(dispatch.unread)}"))
    if evidence.unprobed:
        console.print(lines(f"without a catch: {', '.join(evidence.unprobed)}"))
    if reviewing.changed_tests:
        console.print(lines(f"tests changed since the stage before: {', '.join(reviewing.changed_tests)}"))
    verdict = "the approval is accepted" if evidence.status == "passed" else f"{evidence.status}: {evidence.code}"
    console.print(lines(verdict))
    console.print(lines(f"round {evidence.round} of stage {evidence.stage}: {reviewing.ended.state}"))
    console.print(lines(f"evidence: {reviewing.sealed.path}"))


def _show_judgement(evidence: Evidence) -> None:
    """What the model said, and why its approval does not count where it does not."""
    console = answers()
    judgement = evidence.dispatch.judgement if evidence.dispatch is not None else None
    if judgement is None:
        return
    console.print(lines(f"the model says: {judgement.verdict}: {judgement.summary}"))
    for finding in judgement.findings:
        place = finding.path if finding.line is None else f"{finding.path}:{finding.line}"
        console.print(lines(f"  {finding.severity} {place}: {finding.message}"))
    if judgement.verdict == "approved":
        for problem in acceptance(evidence, definition_facts(evidence.definition)):
            console.print(lines(f"not accepted: {problem.message} ({problem.where})"))


def _answer(reviewing: Reviewing) -> dict[str, JSONValue]:
    evidence = reviewing.sealed.evidence
    dispatch = evidence.dispatch
    result: dict[str, JSONValue] = {"status": evidence.status}
    if evidence.code:
        result["code"] = evidence.code
    result["evidence"] = str(reviewing.sealed.path)
    result["sha256"] = reviewing.sealed.sha256
    result["stage"], result["round"], result["state"] = evidence.stage, evidence.round, reviewing.ended.state
    result["changedTests"] = list[JSONValue](reviewing.changed_tests)
    result["isolation"] = None if evidence.isolation is None else evidence.isolation.as_json()
    if dispatch is not None:
        result["judgement"] = None if dispatch.judgement is None else dispatch.judgement.as_json()
        result["toolCalls"] = len(dispatch.tool_calls)
        result["unread"] = list[JSONValue](dispatch.unread)
    result["unprobed"] = list[JSONValue](evidence.unprobed)
    if reviewing.failure is not None:
        result["failure"] = {"kind": reviewing.failure.kind, "detail": reviewing.failure.detail}
    return result
