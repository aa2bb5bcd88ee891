from __future__ import annotations

import json
from typing import Any

import pytest

from firsthand.checks.counting.node_report import read_events
from firsthand.checks.counting.tally import UnreadableReportError

FILE = "tests/v.test.mjs"


def event(kind: str, name: str, nesting: int = 0, *, suite: bool = False, skip: bool = False, said: str = "") -> Any:
    return [kind, FILE, nesting, name, "suite" if suite else "", skip, False, said]


def report(*events: Any, end: bool = True) -> bytes:
    lines = [json.dumps(each) for each in (*events, *([["end"]] if end else []))]
    return "".join(f"{line}\n" for line in lines).encode()


def ran(kind: str, name: str, nesting: int = 0, **fields: Any) -> list[Any]:
    return [event("enqueue", name, nesting), event("start", name, nesting), event(kind, name, nesting, **fields)]


def read(data: bytes) -> tuple[dict[str, str], bool]:
    tests, complete = read_events(data)
    return {test.name: test.state for test in tests}, complete


def test_tests_are_named_by_file_and_parents() -> None:
    data = report(
        event("enqueue", "/p/" + FILE),
        *ran("pass", "a"),
        *ran("fail", "b", said="AssertionError: 1"),
        *ran("pass", "c", skip=True),
        event("enqueue", "group"),
        event("enqueue", "in", 1),
        event("start", "group"),
        event("start", "in", 1),
        event("pass", "in", 1),
        event("pass", "group", suite=True),
    )
    expected = {
        f"{FILE} > a": "passed",
        f"{FILE} > b": "failed",
        f"{FILE} > c": "skipped",
        f"{FILE} > group > in": "passed",
    }
    assert read(data) == (expected, True)


def test_a_test_that_never_ended_makes_the_run_incomplete() -> None:
    assert read(report(*ran("pass", "a"), event("enqueue", "b"))) == ({f"{FILE} > a": "passed"}, False)


@pytest.mark.parametrize("kind", ["pass", "fail"])
@pytest.mark.parametrize("name", [FILE, "/project/" + FILE])
def test_a_file_that_stands_for_itself_is_no_test(kind: str, name: str) -> None:
    assert read(report(*ran(kind, name))) == ({}, False)


def test_without_its_last_line_a_report_was_cut() -> None:
    assert read(report(*ran("pass", "a"), end=False))[1] is False
    assert read(report(*ran("pass", "a"))[:-1])[1] is False
    assert read(b"") == ({}, False)


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"{}",
        b"[]",
        b'["end", 1]',
        b'["pass", "f", "0", "n", "", false, false, ""]',
        b'["pass", "f", 0, "n", "", 0, false, ""]',
        b'["skip", "f", 0, "n", "", false, false, ""]',
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_what_the_reporter_does_not_write_is_unreadable(line: bytes) -> None:
    with pytest.raises(UnreadableReportError):
        read_events(line + b"\n" + report())
