from __future__ import annotations

import json
from typing import Any

from firsthand.checks.counting.go_report import read_go_events


def event(action: str, test: str = "", output: str = "", package: str = "p") -> dict[str, Any]:
    return {"Action": action, "Package": package, "Test": test, "Output": output}


def read(*events: dict[str, Any] | str) -> tuple[dict[str, tuple[str, str]], bool]:
    lines = [each if isinstance(each, str) else json.dumps(each) for each in events]
    tests, complete = read_go_events("\n".join(lines).encode())
    return {test.name: (test.state, test.message) for test in tests}, complete


def test_tests_are_named_by_package() -> None:
    tests, complete = read(
        event("start"),
        event("run", "A"),
        event("output", "A", "=== RUN   A\n"),
        event("output", "A", "    v_test.go:3: got -1\n"),
        event("output", "A", "--- FAIL: A (0.00s)\n"),
        event("fail", "A"),
        event("run", "B/x"),
        event("pass", "B/x"),
        event("run", "C"),
        event("skip", "C"),
        event("fail"),
    )
    assert tests == {"p.A": ("failed", "v_test.go:3: got -1"), "p.B/x": ("passed", ""), "p.C": ("skipped", "")}
    assert complete


def test_a_build_failure_names_no_test() -> None:
    tests, complete = read(
        {"ImportPath": "p", "Action": "build-output", "Output": "v.go:1: syntax error\n"},
        {"ImportPath": "p", "Action": "build-fail"},
        event("start"),
        event("output", output="FAIL\tp [build failed]\n"),
        event("fail"),
        "FAIL p [build failed]",
    )
    assert (tests, complete) == ({}, True)


def test_a_panic_takes_the_rest_of_the_package_with_it() -> None:
    _, complete = read(
        event("run", "A"), event("output", "A", "panic: x [recovered]\n"), event("fail", "A"), event("fail")
    )
    assert not complete


def test_a_test_or_package_without_an_end_was_cut_off() -> None:
    assert read(event("run", "A"), event("pass"))[1] is False
    assert read(event("run", "A"), event("pass", "A"))[1] is False
    assert read()[1] is False


def test_a_package_that_passes_without_a_test_ended_early_unless_it_says_it_has_none() -> None:
    ran = (event("run", "A", package="q"), event("pass", "A", package="q"), event("pass", package="q"))
    assert read(*ran, event("pass"))[1] is False
    assert read(*ran, event("output", output="testing: warning: no tests to run\n"), event("pass"))[1] is True
    assert read(*ran, event("output", output="?   \tp\t[no test files]\n"), event("skip"))[1] is True


def test_lines_that_are_no_events_are_passed_over() -> None:
    odd = ("", "ok p", "{", '{"Action": 3, "Package": "p"}', '{"x": 1}', '{"Action": "pass"}', '{"a": ' + "[" * 100_000)
    assert read(*odd, event("run", "A"), event("pass", "A"), event("pass")) == ({"p.A": ("passed", "")}, True)
