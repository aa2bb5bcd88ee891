"""`firsthand gate`."""

from __future__ import annotations

from pathlib import Path
from typing import cast, get_args

from firsthand.cli.output import answers, end, lines, print_json, table
from firsthand.cli.trust import keys_at_hand
from firsthand.engine.gating import CLOSING, GateAnswer, StageAnswer, gate
from firsthand.errors import UsageError
from firsthand.rules import Requirement, exit_status

_KNOWN = get_args(Requirement)


def run(
    config: Path, fingerprint: str | None, require: list[str], keys: list[Path], state: Path | None, *, as_json: bool
) -> None:
    """Judge, show, end with 0 only when every stage is green."""
    # Whoever names a key wants what it signed.
    requirements = [*_requirements(require), *(("signed",) if keys else ())]
    answer = gate(
        config,
        state_path=state,
        expected_fingerprint=fingerprint,
        requirements=cast("list[Requirement]", requirements),
        trusted_keys=keys_at_hand(keys, state),
    )
    if as_json:
        print_json(answer.as_json())
    else:
        show(answer)
    end(exit_status(answer.conclusion[1]))


def show(answer: GateAnswer) -> None:
    """The answer for people."""
    console = answers()
    rows = [_row(stage) for stage in answer.stages]
    console.print(table(("STAGE", "STATUS", "ROUND", "EVIDENCE", "REVIEWER", "EXECUTION", "SIGNED"), rows))
    for stage in answer.stages:
        for problem in stage.problems:
            console.print(lines(f"{stage.stage}: {problem.code}: {problem.message} ({problem.where or 'ledger'})"))
        for one in stage.closed:
            console.print(
                lines(f"{stage.stage}: round {one.round} ({one.state}) was closed as {one.closed_as}: {one.reason}")
            )
        for path in stage.changed_tests:
            console.print(lines(f"{stage.stage}: a registered test changed after this stage: {path}"))
        for path in stage.changed:
            if path not in stage.changed_tests:
                console.print(lines(f"{stage.stage}: changed after this stage: {path}"))
        if stage.evidence is not None:
            for path in stage.evidence.unprobed:
                console.print(lines(f"{stage.stage}: no mutation was caught in: {path}"))
            for path in stage.evidence.dispatch.unread if stage.evidence.dispatch is not None else ():
                console.print(lines(f"{stage.stage}: not delivered whole to the reviewer: {path}"))
    status, code = answer.conclusion
    console.print()
    console.print(lines("green" if status == "passed" else f"not green: {status}: {code}"))
    console.print(lines(CLOSING))


def _row(stage: StageAnswer) -> tuple[str, ...]:
    latest = stage.rounds[-1] if stage.rounds else None
    evidence = stage.evidence
    isolation = evidence.isolation if evidence is not None else None
    freshness = {True: "stale", False: "fresh", None: "superseded" if stage.superseded else "-"}[stage.stale]
    reviewer = "-" if isolation is None else isolation.level + (f" ({isolation.reason})" if isolation.reason else "")
    return (
        stage.stage,
        stage.conclusion[0],
        "-" if latest is None else f"{latest.round} {latest.state}",
        freshness,
        reviewer,
        "-" if evidence is None else evidence.execution,
        "yes" if stage.signed else "no",
    )


def _requirements(require: list[str]) -> list[str]:
    for one in require:
        if one not in _KNOWN:
            raise UsageError(
                f"there is no requirement {one!r}", where="--require", next_step=f"choose from {', '.join(_KNOWN)}"
            )
    return require
