"""From single tests to the record: counts, named failures, the sorted set of names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from firsthand.canonical import canonical_digest, sha256_hex
from firsthand.records import FailedTest, TestCounts, TestNames
from firsthand.rules import LIMIT_FAILURES

MESSAGE_CHARACTERS: Final = 200
NAME_CHARACTERS: Final = 500
MOST_TESTS: Final = 50_000
"""Most distinct tests that a report may name; more is unreadable, so that evidence stays bounded."""

TestState: TypeAlias = Literal["passed", "failed", "skipped"]
Source: TypeAlias = Literal["report", "summary"]

_STRENGTH: Final[dict[TestState, int]] = {"skipped": 0, "passed": 1, "failed": 2}


class UnreadableReportError(ValueError):
    """A report that may not or can't be read: a link, too large, with a document type, not what the runner writes.

    A plain `ValueError`: it never leaves the room, where it becomes a run without counts.
    """


@dataclass(frozen=True, slots=True)
class SingleTest:
    """One test as its runner reported it; `message` is a failure's text, in whatever length."""

    name: str
    state: TestState
    message: str = ""


@dataclass(frozen=True, slots=True)
class Counted:
    """The record of a run's tests, and the names that it refers to by digest."""

    tests: TestCounts
    names: TestNames | None


def tally(source: Source, tests: Iterable[SingleTest], *, complete: bool) -> Counted:
    """Count tests that are all known by name. Of several reports of one name the worst counts.

    Raises:
        UnreadableReportError: more than `MOST_TESTS` names.
    """
    merged: dict[str, SingleTest] = {}
    for test in tests:
        name = shown_name(test.name)
        known = merged.get(name)
        if known is None or _STRENGTH[test.state] > _STRENGTH[known.state]:
            merged[name] = SingleTest(name=name, state=test.state, message=test.message)
        if len(merged) > MOST_TESTS:
            raise UnreadableReportError(f"more than {MOST_TESTS} tests")
    executed = sorted(name for name, test in merged.items() if test.state != "skipped")
    failures = [merged[name] for name in executed if merged[name].state == "failed"]
    names = table_of(executed) if executed else None
    counts = TestCounts(
        source=source,
        executed=len(executed),
        failed=len(failures),
        skipped=len(merged) - len(executed),
        failures=failed_tests((test.name, test.message) for test in failures),
        names=names.digest if names is not None else None,
        complete=complete,
    )
    return Counted(tests=counts, names=names)


def bare_counts(
    *, executed: int, failed: int, skipped: int, failures: Iterable[tuple[str, str]], complete: bool
) -> Counted:
    """Counts from a summary that does not name the tests that passed. A negative count is taken for none."""
    named = failed_tests(failures)
    executed = max(0, executed)
    counts = TestCounts(
        source="summary",
        executed=executed,
        failed=min(executed, max(0, failed)),
        skipped=max(0, skipped),
        failures=named[: min(executed, max(0, failed))],
        names=None,
        complete=complete,
    )
    return Counted(tests=counts, names=None)


def silent(source: Source) -> Counted:
    """A run whose runner never got to its report or summary."""
    counts = TestCounts(source=source, executed=0, failed=0, skipped=0, failures=(), names=None, complete=False)
    return Counted(tests=counts, names=None)


def failed_tests(failures: Iterable[tuple[str, str]]) -> tuple[FailedTest, ...]:
    """The failures as recorded: one a name, sorted, at most `LIMIT_FAILURES`."""
    messages: dict[str, str] = {}
    for name, message in failures:
        messages.setdefault(shown_name(name), first_line(message))
    kept = sorted(messages)[:LIMIT_FAILURES]
    return tuple(FailedTest(name=name, message=messages[name]) for name in kept)


def table_of(names: Iterable[str]) -> TestNames:
    """The table of these names, sorted and distinct."""
    distinct = tuple(sorted(set(names)))
    return TestNames(digest=canonical_digest(list(distinct)), names=distinct)


def first_line(text: str) -> str:
    """The first line with anything on it, at most `MESSAGE_CHARACTERS`."""
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped:
            return printable(stripped)[:MESSAGE_CHARACTERS]
    return ""


def shown_name(name: str) -> str:
    """A test's name as recorded. A very long one keeps its beginning and a digest, so that two stay two."""
    text = printable(name)
    if len(text) <= NAME_CHARACTERS:
        return text
    return f"{text[:NAME_CHARACTERS]}…{sha256_hex(text.encode())[:16]}"


def printable(text: str) -> str:
    """The same text without lone surrogates, which no strict JSON may hold."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
