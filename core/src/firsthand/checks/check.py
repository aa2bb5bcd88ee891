"""One registered check, run once, as a record."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from firsthand.checks.counting import Counted, Reporting, UnreadableReportError, count_tests, reporting_for
from firsthand.checks.excerpt import excerpt
from firsthand.checks.lane import Executed, Lane
from firsthand.checks.recorder import Recorder
from firsthand.isolation.interface import Captured, Request, Result
from firsthand.records import CheckRun, Command, Executable, Outcome, RunnerName, RunPurpose, TestCounts
from firsthand.rules import check_status


@dataclass(frozen=True, slots=True)
class PlacedCheck:
    """A registered check whose program was placed.

    Attributes:
        id: its id.
        command: the argv as registered.
        runner: how its tests are counted (`rules.runner_of`).
        executable: what argv[0] leads to inside the enclosure; None when it could not be placed.
        timeout_ms: limit of each of its runs.
    """

    id: str
    command: tuple[str, ...]
    runner: RunnerName
    executable: Executable | None
    timeout_ms: int


def run_check(
    lane: Lane,
    check: PlacedCheck,
    recorder: Recorder,
    *,
    purpose: RunPurpose = "baseline",
    deadline_ms: int | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> CheckRun:
    """Run a check once and enter its record.

    Args:
        lane: where it runs; the lane settles its copy before and after.
        check: what runs.
        recorder: gets the record, and the code when the run voids what was before it.
        purpose: what the copy holds.
        deadline_ms: a limit below the check's own, for mutated runs.
        cancelled: asked while the command runs; once true it is ended, and no record is made.

    Returns:
        The record as entered. A run that changed registered files or whose end is unknown is entered like any other,
        with the voiding code after it; `lane.spoiled` then tells why the lane takes no further command.

    Raises:
        RunCancelledError: it was cancelled.
        FirsthandError: the lane takes no command, or the copy was not as it should be before it; nothing was run. A
            drift found then is entered as voiding.
    """
    reporting = reporting_for(check.runner, check.command)
    try:
        timeout_ms = check.timeout_ms if deadline_ms is None else min(deadline_ms, check.timeout_ms)
        executed = _execute(lane, check, reporting, timeout_ms, cancelled)
    except BaseException:
        _enter_void(lane, recorder)
        raise
    result = executed.result
    counted: Counted | None = None
    if result.outcome.kind not in {"could-not-start", "sandbox-failed"}:
        counted = count_tests(
            check.runner,
            reporting,
            stdout=result.stdout.data,
            stderr=result.stderr.data,
            read_report=partial(_report, executed),
        )
    build = partial(_record, lane, check, purpose, result, counted.tests if counted is not None else None)
    run = recorder.check_run(build, counted.names if counted is not None else None)
    _enter_void(lane, recorder)
    return run


def _execute(
    lane: Lane, check: PlacedCheck, reporting: Reporting, timeout_ms: int, cancelled: Callable[[], bool] | None
) -> Executed:
    if check.executable is None:
        return Executed(_never_started(check.command[0]), None, report_refused=False)
    request = Request(
        argv=check.command,
        executable=check.executable.path,
        timeout_s=timeout_ms / 1000,
        environment=reporting.environment,
        cancelled=cancelled,
    )
    return lane.execute(request, reporting.file)


def _never_started(program: str) -> Result:
    empty = Captured(data=b"", total_bytes=0, sha256=hashlib.sha256().hexdigest())
    detail = f"no program was found for {program}"
    outcome = Outcome(kind="could-not-start", cleanup="complete", duration_ms=0, detail=detail)
    return Result(outcome=outcome, stdout=empty, stderr=empty)


def _enter_void(lane: Lane, recorder: Recorder) -> None:
    code = lane.take_void()
    if code is not None:
        recorder.voided(code)


def _report(executed: Executed) -> bytes | None:
    if executed.report_refused:
        raise UnreadableReportError("what stands at the report's place may not be read")
    return executed.report


def _record(
    lane: Lane, check: PlacedCheck, purpose: RunPurpose, result: Result, tests: TestCounts | None, number: int
) -> CheckRun:
    status, cause = check_status(check.runner, result.outcome, tests)
    return CheckRun(
        run=number,
        check_id=check.id,
        purpose=purpose,
        lane=lane.number,
        runner=check.runner,
        command=Command(
            argv=check.command,
            cwd=".",
            executable=check.executable,
            outcome=result.outcome,
            stdout=excerpt(result.stdout),
            stderr=excerpt(result.stderr),
        ),
        tests=tests,
        status=status,
        cause=cause,
    )
