"""`firsthand check`."""

from __future__ import annotations

from pathlib import Path

from firsthand.canonical import JSONValue
from firsthand.cli.output import answers, diagnostics, end, lines, print_json, table
from firsthand.cli.progress import watched
from firsthand.engine.checking import run_checks
from firsthand.engine.sealing import Sealed
from firsthand.records import CheckRun, Excerpt, Outcome

_SHOWN_LINES = 20


def run(config: Path, out: Path | None, sign: Path | None, state: Path | None, *, as_json: bool) -> None:
    """Run the checks, show them, end with the contract's exit status."""
    with watched(quiet=as_json) as (line, watching):
        sealed = run_checks(config, state_path=state, out=out, key=sign, observers=watching, progress=line.probe)
    if as_json:
        print_json(answer(sealed))
    else:
        show(sealed)
    end(sealed.exit_status)


def answer(sealed: Sealed) -> dict[str, JSONValue]:
    """The JSON shape of the contract."""
    evidence = sealed.evidence
    result: dict[str, JSONValue] = {"status": evidence.status}
    if evidence.code:
        result["code"] = evidence.code
    result["evidence"] = str(sealed.path)
    result["sha256"] = sealed.sha256
    result["checks"] = [_check(run) for run in evidence.runs]
    return result


def _check(run: CheckRun) -> dict[str, JSONValue]:
    outcome = run.command.outcome
    ended: dict[str, JSONValue] = {"kind": outcome.kind}
    if outcome.exit_code is not None:
        ended["exitCode"] = outcome.exit_code
    if outcome.signal is not None:
        ended["signal"] = outcome.signal
    status = "unknown" if run.status == "inconclusive" else run.status
    result: dict[str, JSONValue] = {
        "id": run.check_id,
        "status": status,
        "cause": run.cause,
        "outcome": ended,
        "cleanup": outcome.cleanup,
        "leftovers": outcome.leftovers,
        "durationMs": outcome.duration_ms,
    }
    if run.tests is not None:
        tests = run.tests
        result["tests"] = {
            "executed": tests.executed,
            "failed": tests.failed,
            "skipped": tests.skipped,
            "source": tests.source,
        }
    return result


def show(sealed: Sealed) -> None:
    """The table for people, what failed, and the one sentence that matters."""
    evidence = sealed.evidence
    console = answers()
    rows = [
        (run.check_id, run.status, told_outcome(run.command.outcome), told_tests(run), _duration(run), run.cause)
        for run in evidence.runs
    ]
    console.print(table(("CHECK", "STATUS", "OUTCOME", "TESTS", "TIME", "CAUSE"), rows))
    for run in evidence.runs:
        if run.status != "passed":
            _show_output(run)
        if run.command.outcome.leftovers:
            count = run.command.outcome.leftovers
            console.print(lines(f"{run.check_id}: {count} process(es) outlived the command and were ended"))
    console.print()
    verdict = "every check is green" if evidence.status == "passed" else f"{evidence.status}: {evidence.code}"
    console.print(lines(verdict))
    console.print(lines(f"evidence: {sealed.path}"))
    for code in evidence.voided:
        console.print(lines(f"void: {code}"))


def told_outcome(outcome: Outcome) -> str:
    """One outcome in a few words."""
    if outcome.exit_code is not None:
        return f"exit {outcome.exit_code}"
    if outcome.signal is not None:
        return f"signal {outcome.signal}"
    if outcome.limit is not None:
        return f"{outcome.kind} ({outcome.limit})"
    return outcome.kind


def told_tests(run: CheckRun) -> str:
    """The test counts of one run in a few words."""
    if run.tests is None:
        return "-"
    tests = run.tests
    parts = [f"{tests.executed} run"]
    if tests.failed:
        parts.append(f"{tests.failed} failed")
    if tests.skipped:
        parts.append(f"{tests.skipped} skipped")
    return ", ".join(parts) + f" ({tests.source})"


def _duration(run: CheckRun) -> str:
    return f"{run.command.outcome.duration_ms / 1000:.2f} s"


def _show_output(run: CheckRun) -> None:
    console = diagnostics()
    if run.command.outcome.detail:
        console.print(lines(f"{run.check_id}: {run.command.outcome.detail}"))
    for name, excerpt in (("stdout", run.command.stdout), ("stderr", run.command.stderr)):
        text = _end_of(excerpt)
        if text:
            console.print(lines(f"--- {run.check_id} {name}, last lines ---\n{text}"))


def _end_of(excerpt: Excerpt) -> str:
    text = excerpt.tail if excerpt.truncated else excerpt.head
    return "\n".join(text.rstrip("\n").split("\n")[-_SHOWN_LINES:])
