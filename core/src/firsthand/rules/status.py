"""What one run of a check proves: a status and its cause.

The exit code decides first. What the runner says of its tests is the checked code's own word: it can turn a green
exit into `inconclusive`, and nothing into green. Source: the contract, Checks and mutations.
"""

from __future__ import annotations

from typing import assert_never

from firsthand.records import CheckCause, CheckStatus, Outcome, RunnerName, TestCounts
from firsthand.rules.runner import FIRST_SIGNAL_EXIT_CODE


def check_status(  # noqa: PLR0911 # one return a rule: it reads as the table that it is
    runner: RunnerName, outcome: Outcome, tests: TestCounts | None
) -> tuple[CheckStatus, CheckCause]:
    """Judge one run.

    Args:
        runner: how the check's tests are counted; `exit` ignores `tests`.
        outcome: what the host measured.
        tests: what the runner said; None when it said nothing that could be read.
    """
    if outcome.cleanup == "unknown":
        return "unknown", "cleanup-unknown"
    match outcome.kind:
        case "sandbox-failed":
            return "unknown", "sandbox-failed"
        case "signalled":
            return "failed", "signalled"
        case "timed-out":
            return "failed", "timed-out"
        case "output-limit":
            return "failed", "output-limit"
        case "could-not-start":
            return "failed", "could-not-start"
        case "exited":
            return _exited(runner, outcome.exit_code, tests)
        case _:  # pragma: no cover - the record admits no other kind
            assert_never(outcome.kind)


def _exited(runner: RunnerName, exit_code: int | None, tests: TestCounts | None) -> tuple[CheckStatus, CheckCause]:
    if exit_code != 0:
        ambiguous = exit_code is None or exit_code >= FIRST_SIGNAL_EXIT_CODE
        return "failed", "signal-exit-code" if ambiguous else "exit-nonzero"
    if runner == "exit":
        return "passed", "exit-zero"
    doubt = green_doubt(tests)
    return ("passed", "exit-zero") if doubt is None else ("inconclusive", doubt)


def green_doubt(tests: TestCounts | None) -> CheckCause | None:
    """Why exit 0 of a counting runner proves nothing, or None when at least one test ran and none failed."""
    if tests is None or not is_consistent(tests):
        return "report-unreadable"
    if not tests.complete:
        return "ended-early"
    if tests.failed:
        return "report-contradicts-exit"
    if not tests.executed:
        return "all-skipped" if tests.skipped else "no-tests"
    return None


def is_consistent(tests: TestCounts) -> bool:
    """Whether the counts can be true at all: no more failures than tests, no more names than failures."""
    names = [failure.name for failure in tests.failures]
    return tests.failed <= tests.executed and len(names) <= tests.failed and names == sorted(set(names))
