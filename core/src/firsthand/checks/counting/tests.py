"""One run's tests, from whatever its runner left behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from firsthand.checks.counting.go_report import read_go_events
from firsthand.checks.counting.node_report import read_events
from firsthand.checks.counting.pytest_report import read_junit
from firsthand.checks.counting.reporting import Reporting
from firsthand.checks.counting.summary import read_cargo, read_node, read_pytest, read_unittest
from firsthand.checks.counting.tally import Counted, UnreadableReportError, silent, tally
from firsthand.records import RunnerName

_PYTEST_EXIT: Final = re.compile(rb"^!+ _pytest\.outcomes\.Exit\b.*!+\r?$|^!+ KeyboardInterrupt !+\r?$", re.MULTILINE)


def count_tests(
    runner: RunnerName,
    reporting: Reporting,
    *,
    stdout: bytes,
    stderr: bytes,
    read_report: Callable[[], bytes | None],
) -> Counted | None:
    """Count what the runner says it executed.

    Args:
        runner: `exit` is never counted.
        reporting: what the run was asked for.
        stdout: what was kept of the stream.
        stderr: the same.
        read_report: reads the report file: None when there is none.

    Returns:
        None when there is a report that can't be read, and for `exit`. A runner that left neither report nor summary
        gives counts of zero that are not complete: it ended early.
    """
    try:
        return _count(runner, reporting, stdout, stderr, read_report)
    except UnreadableReportError:
        return None


def _count(  # noqa: PLR0911 # one return a runner and kind of source
    runner: RunnerName,
    reporting: Reporting,
    stdout: bytes,
    stderr: bytes,
    read_report: Callable[[], bytes | None],
) -> Counted | None:
    match runner:
        case "exit":
            return None
        case "pytest":
            report = read_report()
            if report is None:
                return read_pytest(stdout) or silent("report")
            tests, complete = read_junit(report)
            # A test may end the session with exit code 0; the report then looks whole, and only this line tells.
            return tally("report", tests, complete=complete and not _PYTEST_EXIT.search(stdout))
        case "node-test":
            report = read_report() if reporting.form == "node-events" else None
            if report is None:
                return read_node(stdout) or silent("summary")
            tests, complete = read_events(report)
            return tally("report", tests, complete=complete)
        case "go-test":
            tests, complete = read_go_events(stdout)
            return tally("report", tests, complete=complete)
        case "unittest":
            return read_unittest(stdout, stderr) or silent("summary")
        case "cargo-test":
            return read_cargo(stdout) or silent("summary")
