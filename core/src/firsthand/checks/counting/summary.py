"""Summaries that runners print for people: unittest and cargo always, pytest and node where no report came."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from firsthand.checks.counting.tally import Counted, SingleTest, TestState, bare_counts, tally

_UNITTEST_RAN: Final = re.compile(r"^Ran (\d{1,9}) tests? in [0-9.]+s$", re.MULTILINE)
_UNITTEST_END: Final = re.compile(r"\s*^(OK|FAILED|NO TESTS RAN)(?: \(([^()\n]*)\))?$", re.MULTILINE)
_UNITTEST_FAILURE: Final = re.compile(
    r"^={70}\n(?:FAIL|ERROR|UNEXPECTED SUCCESS): ([^\n]+)\n(?:[^\n]*\n)?", re.MULTILINE
)
_UNITTEST_NAMED: Final = re.compile(r"^(\w+ \([\w.<>]+\))(?:\n[^\n]*)? \.\.\. ([^\n]*)$", re.MULTILINE)
_SUBTEST: Final = re.compile(r"\A(\w+ \([^)]+\))")
_ERROR_LINE: Final = re.compile(r"^([\w.]*(?:Error|Exception|Exit|Interrupt|Warning|Failure)\b[^\n]*)$", re.MULTILINE)

_PYTEST_END: Final = re.compile(
    r"^=*\s*((?:\d{1,9} [a-z]+, )*\d{1,9} [a-z]+|no tests ran) in [0-9.]+s.*$", re.MULTILINE
)
_PYTEST_FAILURE: Final = re.compile(r"^(?:FAILED|ERROR) (\S[^\n]*?)(?: - ([^\n]*))?$", re.MULTILINE)

_NODE_COUNT: Final = re.compile(r"^(?:#|\u2139) (tests|pass|fail|cancelled|skipped|todo) (\d{1,9})$", re.MULTILINE)
_NODE_TEST: Final = re.compile(r"^\s*(✖|✔|not ok \d+ -|ok \d+ -) ([^\n]+?)(?: \([0-9.]+ms\))?$", re.MULTILINE)
_SCRIPT: Final = re.compile(r"\.[cm]?[jt]sx?\Z")

_CARGO_RUNNING: Final = re.compile(r"^running \d{1,9} tests?$", re.MULTILINE)
_CARGO_RESULT: Final = re.compile(
    r"^test result: (?:ok|FAILED)\. (\d{1,9}) passed; (\d{1,9}) failed; (\d{1,9}) ignored;[^\n]*$", re.MULTILINE
)
_CARGO_TEST: Final = re.compile(
    r"^test (\S[^\n]*?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)(?:,[^\n]*)?$", re.MULTILINE
)
_CARGO_LINE: Final = re.compile(r" \(line \d+\)")
_CARGO_PANIC: Final = re.compile(
    r"^---- (\S[^\n]*?) stdout ----\n(.*?)(?=^---- |^failures:$|\Z)", re.MULTILINE | re.DOTALL
)


def read_unittest(stdout: bytes, stderr: bytes) -> Counted | None:
    """The last `Ran N tests` with its verdict line, as unittest prints it; None when there is none."""
    for text in (_text(stderr), _text(stdout)):
        ran = _last(_UNITTEST_RAN, text)
        end = _UNITTEST_END.match(text, ran.end()) if ran is not None else None
        if ran is None or end is None:
            continue
        counts = _pairs(end.group(2) or "")
        skipped = counts.get("skipped", 0) + counts.get("expected failures", 0)
        failures = list(_unittest_failures(text[: ran.start()]))
        named = _unittest_names(text[: ran.start()], int(ran.group(1)))
        if named is not None:
            messages = dict(failures)
            return tally(
                "summary",
                (SingleTest(name, state, messages.get(name, "")) for name, state in named),
                complete=True,
            )
        said = counts.get("failures", 0) + counts.get("errors", 0) + counts.get("unexpected successes", 0)
        # Subtests fail several times in one test, which is one executed test.
        failed = len(dict(failures)) if failures else said
        return bare_counts(
            executed=int(ran.group(1)) - skipped, failed=failed, skipped=skipped, failures=failures, complete=True
        )
    return None


def read_pytest(stdout: bytes) -> Counted | None:
    """The line that pytest closes with; None when there is none."""
    text = _text(stdout)
    end = _last(_PYTEST_END, text)
    if end is None:
        return None
    counts = {} if end.group(1) == "no tests ran" else _words(end.group(1))
    failed = counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0)
    executed = counts.get("passed", 0) + counts.get("xpassed", 0) + failed
    skipped = counts.get("skipped", 0) + counts.get("xfailed", 0)
    failures = [(found.group(1), found.group(2) or "") for found in _PYTEST_FAILURE.finditer(text)]
    return bare_counts(executed=executed, failed=failed, skipped=skipped, failures=failures, complete=True)


def read_node(stdout: bytes) -> Counted | None:
    """The counts that node's `spec` and `tap` reporters end with; None when they are not all there."""
    text = _text(stdout)
    counts = {found.group(1): int(found.group(2)) for found in _NODE_COUNT.finditer(text)}
    if not {"tests", "pass", "fail", "cancelled", "skipped", "todo"} <= counts.keys():
        return None
    tests = [(found.group(1), found.group(2)) for found in _NODE_TEST.finditer(text)]
    failures = [(name, "") for mark, name in tests if mark.startswith(("✖", "not"))]
    # A file that did not load, ended early or holds no tests stands among the tests under its own path; it is none.
    files = any(_SCRIPT.search(name) for _, name in tests)
    failed = counts["fail"] + counts["cancelled"]
    return bare_counts(
        executed=counts["pass"] + failed,
        failed=failed,
        skipped=counts["skipped"] + counts["todo"],
        failures=[(name, message) for name, message in failures if not _SCRIPT.search(name)],
        complete=not files,
    )


def read_cargo(stdout: bytes) -> Counted | None:
    """All sections of `cargo test`; None when no test binary ran. A section without its result ended early."""
    text = _text(stdout)
    sections = len(_CARGO_RUNNING.findall(text))
    results = [[int(number) for number in found] for found in _CARGO_RESULT.findall(text)]
    if not sections:
        return None
    complete = sections == len(results)
    passed, failed, skipped = (sum(result[place] for result in results) for place in range(3))
    messages = {found.group(1): _panic(found.group(2)) for found in _CARGO_PANIC.finditer(text)}
    states: dict[str, TestState] = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
    tests: list[SingleTest] = []
    times: Counter[str] = Counter()
    for found in _CARGO_TEST.finditer(text):
        # Where a documentation test stands is an accident: any edit above it moves it.
        name = _CARGO_LINE.sub("", found.group(1))
        times[name] += 1
        # Several tests may share a name (in two binaries, in one item's documentation); their order is fixed.
        shown = name if times[name] == 1 else f"{name} ({times[name]})"
        tests.append(SingleTest(shown, states[found.group(2)], messages.get(found.group(1), "")))
    # With --nocapture or --quiet not every test has a line of its own; then only the counts are known.
    if len({test.name for test in tests}) == passed + failed + skipped:
        return tally("summary", tests, complete=complete)
    failures = [(test.name, test.message) for test in tests if test.state == "failed"] or list(messages.items())
    return bare_counts(executed=passed + failed, failed=failed, skipped=skipped, failures=failures, complete=complete)


def _unittest_failures(text: str) -> list[tuple[str, str]]:
    """Name and error line of each failure block; subtests of one test fall together."""
    found = list(_UNITTEST_FAILURE.finditer(text))
    failures: list[tuple[str, str]] = []
    for position, block in enumerate(found):
        end = found[position + 1].start() if position + 1 < len(found) else len(text)
        errors = _ERROR_LINE.findall(text[block.end() : end])
        name = _SUBTEST.match(block.group(1))
        failures.append((name.group(1) if name else block.group(1), errors[-1] if errors else ""))
    return failures


def _unittest_names(text: str, ran: int) -> list[tuple[str, TestState]] | None:
    """Name and state of each test where `-v` lists all of them, else None."""
    named: dict[str, TestState] = {}
    for found in _UNITTEST_NAMED.finditer(text):
        state = _unittest_state(found.group(2))
        if state is None:
            return None
        named[found.group(1)] = state
    return list(named.items()) if len(named) == ran else None


def _unittest_state(word: str) -> TestState | None:
    """What `-v` says of a test; None where the test itself wrote into the line, a warning of Python's included."""
    if word == "ok":
        return "passed"
    if word.startswith(("skipped", "expected failure")):
        return "skipped"
    return "failed" if word in ("FAIL", "ERROR", "unexpected success") else None


def _panic(text: str) -> str:
    """What a Rust test said when it panicked: the line after the place, or the whole line in older versions."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    for position, line in enumerate(lines):
        if " panicked at " in line:
            return lines[position + 1] if line.endswith(":") and position + 1 < len(lines) else line
    return lines[0] if lines else ""


def _pairs(text: str) -> dict[str, int]:
    """`failures=1, expected failures=2` as numbers."""
    pairs = (part.partition("=") for part in text.split(", ") if part)
    return {name: int(number) for name, _, number in pairs if number.isascii() and number.isdigit()}


def _words(text: str) -> dict[str, int]:
    """`3 passed, 1 failed` as numbers."""
    return {word: int(number) for number, word in (part.split(" ") for part in text.split(", "))}


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = None
    for match in pattern.finditer(text):
        found = match
    return found


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace").replace("\r\n", "\n")
