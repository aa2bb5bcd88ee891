"""When two failures are the same failure.

A mutation that keeps a file from loading fails tests without any test having looked at behaviour. The control
mutation shows what that looks like; a failure of the same test in the same way proves nothing.
"""

from __future__ import annotations

import re
from typing import Final

from firsthand.records import CheckRun, FailedTest, TestCounts

LIMIT_FAILURES: Final = 64
"""Most failures that a record keeps; beyond it only `failed` counts on."""

_NOT_LOADED: Final = "does not load"
_LOADING: Final = re.compile(
    r"\b(?:SyntaxError|IndentationError|TabError|ImportError|ModuleNotFoundError|ERR_MODULE_NOT_FOUND)\b"
)
_EXHAUSTED: Final = re.compile(
    r"MemoryError\b|\bE(?:NOMEM|NOSPC|MFILE|NFILE|AGAIN|FBIG|DQUOT)\b|[Cc]annot allocate memory|[Uu]nable to allocate"
    r"|No space left on device|File too large|Too many open files|Resource temporarily unavailable"
    r"|can't start new thread|memory allocation of \d+ bytes failed|[Aa]llocation failed"
)
_ADDRESS: Final = re.compile(r"\b0x[0-9a-fA-F]+\b")
_POSITION: Final = re.compile(r"\bline \d+\b|\.\w+:\d+(?::\d+)?\b")
_UNDEFINED_NAME: Final = re.compile(r"\b(?:NameError|ReferenceError)\b")
_ASSERTION: Final = re.compile(r"\bassert", re.IGNORECASE)
_ERROR_LINE: Final = re.compile(r"^\s*(?:Uncaught )?[\w.]*(?:Error|Exception)\b.*$", re.MULTILINE)


def signature(message: str) -> str:
    """What is left of a failure's first line when its accidents (addresses, positions) are taken out.

    All ways of not loading are one signature: which token a broken file trips over is an accident too.
    """
    if _LOADING.search(message):
        return _NOT_LOADED
    return _POSITION.sub("position", _ADDRESS.sub("address", message)).strip()


def repeats_control(mutated: CheckRun, control: CheckRun) -> bool:
    """Whether every failure of the mutated run is one that the control brought about as well."""
    if mutated.runner == "exit":
        return _same_bare_failure(mutated, control)
    if mutated.tests is None or control.tests is None or not mutated.tests.failures:
        return False
    if all(_stands_in(failure, control.tests) for failure in mutated.tests.failures):
        return True
    return _fails_while_loading(mutated.tests, control.tests)


def ran_out(mutated: CheckRun) -> bool:
    """Whether every failure of the run is one of the machine's limits: memory, disk, processes, descriptors ran out.

    Such an end depends on where the check ran, not on what it looked at, as a kill for the same reason would.
    """
    if mutated.runner == "exit":
        return _EXHAUSTED.search(_last_error(mutated)) is not None
    failures = mutated.tests.failures if mutated.tests is not None else ()
    return bool(failures) and all(_EXHAUSTED.search(failure.message) for failure in failures)


def _fails_while_loading(mutated: TestCounts, control: TestCounts) -> bool:
    """Whether the mutated file raised while it was loaded, where tests load it lazily and a report shows no frames.

    Then exactly the tests that the control took down fail, all with one and the same exception, and it is no
    assertion. A single such test is enough only for an undefined name: with other exceptions it may have been called.
    """
    if mutated.failed != control.failed or {f.name for f in mutated.failures} != {f.name for f in control.failures}:
        return False
    if {signature(failure.message) for failure in control.failures} != {_NOT_LOADED}:
        return False
    marks = {signature(failure.message) for failure in mutated.failures}
    if len(marks) != 1:
        return False
    mark = marks.pop()
    return not _ASSERTION.search(mark) and (mutated.failed > 1 or _UNDEFINED_NAME.search(mark) is not None)


def _stands_in(failure: FailedTest, control: TestCounts) -> bool:
    mark = signature(failure.message)
    if any(other.name == failure.name and signature(other.message) == mark for other in control.failures):
        return True
    # Where the control's list was cut, a name that is not on it may have failed all the same: the way of failing
    # decides, and doubt counts against the catch.
    cut = control.failed > len(control.failures) and len(control.failures) >= LIMIT_FAILURES
    return cut and any(signature(other.message) == mark for other in control.failures)


def _same_bare_failure(mutated: CheckRun, control: CheckRun) -> bool:
    """Bare exit codes name no test: the same code with the same last error line is the same failure."""
    if mutated.command.outcome.exit_code != control.command.outcome.exit_code:
        return False
    ours, theirs = _last_error(mutated), _last_error(control)
    return bool(ours) and ours == theirs


def _last_error(run: CheckRun) -> str:
    for stream in (run.command.stderr, run.command.stdout):
        for text in (stream.tail, stream.head):
            lines = _ERROR_LINE.findall(text)
            if lines:
                return signature(lines[-1])
    return ""
