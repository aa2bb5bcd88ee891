from __future__ import annotations

import pytest

from firsthand.checks.counting.pytest_report import read_junit
from firsthand.checks.counting.tally import UnreadableReportError, tally

HEAD = '<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" tests="3">'
TAIL = "</testsuite></testsuites>"


def read(cases: str, tail: str = TAIL) -> tuple[dict[str, tuple[str, str]], bool]:
    tests, complete = read_junit((HEAD + cases + tail).encode())
    return {test.name: (test.state, test.message) for test in tests}, complete


def test_passed_failed_and_skipped_are_told_apart() -> None:
    tests, complete = read(
        '<testcase classname="t" name="a"/>'
        '<testcase classname="t.C" name="b"><failure message="assert 1 == 2&#10; more">text</failure></testcase>'
        '<testcase classname="t" name="c"><skipped type="pytest.skip" message="no"/></testcase>'
        '<testcase classname="t" name="d"><skipped type="pytest.xfail" message=""/></testcase>'
        '<testcase classname="t" name="e"><error message="failed on setup with &quot;ValueError: x&quot;"/></testcase>'
    )
    assert complete
    assert tests == {
        "t::a": ("passed", ""),
        "t.C::b": ("failed", "assert 1 == 2\n more"),
        "t::c": ("skipped", ""),
        "t::d": ("skipped", ""),
        "t::e": ("failed", 'ValueError: x"'),
    }


def test_a_syntax_error_is_named_by_its_last_line() -> None:
    message = "  File &quot;/p/value.py&quot;, line 1&#10;    )x&#10;    ^&#10;SyntaxError: unmatched ')'"
    tests, _ = read(f'<testcase classname="t" name="a"><failure message="{message}"/></testcase>')
    assert tests["t::a"] == ("failed", "SyntaxError: unmatched ')'")


def test_a_failure_and_a_teardown_error_are_one_failed_test() -> None:
    tests, _ = read_junit(
        (
            HEAD + '<testcase classname="t" name="a"><failure message="first"/></testcase>'
            '<testcase classname="t" name="a"><error message="second"/></testcase>' + TAIL
        ).encode()
    )
    counted = tally("report", tests, complete=True)
    assert (counted.tests.executed, counted.tests.failed) == (1, 1)
    assert [failure.message for failure in counted.tests.failures] == ["first"]


def test_a_case_without_a_name_ended_the_session() -> None:
    tests, complete = read('<testcase classname="t" name="a"/><testcase time="0.0"/>')
    assert tests == {"t::a": ("passed", "")}
    assert not complete


@pytest.mark.parametrize("cut", range(1, len(TAIL)))
def test_a_report_cut_anywhere_is_not_complete(cut: int) -> None:
    tests, complete = read('<testcase classname="t" name="a"/>', TAIL[:-cut])
    assert tests == {"t::a": ("passed", "")}
    assert not complete


def test_an_empty_report_is_not_complete() -> None:
    assert read_junit(b"") == ([], False)


@pytest.mark.parametrize(
    "data",
    [
        b'<!DOCTYPE testsuites [<!ENTITY a "x">]><testsuites/>',
        b"<!DOCTYPE testsuites><testsuites/>",
        b'<!DOCTYPE testsuites SYSTEM "file:///etc/passwd"><testsuites/>',
        b"<html/>",
        b"not xml",
        b"<testsuites></testsuite>",
        b"<testsuites/><testsuites/>",
        b"<testsuites>&undefined;</testsuites>",
        b"<testsuites>\xff</testsuites>",
        b"<testsuites>" + b"<a>" * 40,
        "<testsuites/>".encode("utf-16"),
    ],
)
def test_what_pytest_does_not_write_is_unreadable(data: bytes) -> None:
    with pytest.raises(UnreadableReportError):
        read_junit(data)


def test_entities_are_never_expanded() -> None:
    bomb = b'<!DOCTYPE a [<!ENTITY a "xxxxxxxxxx"><!ENTITY b "&a;&a;&a;&a;&a;">]><testsuites>&b;</testsuites>'
    with pytest.raises(UnreadableReportError, match="document type"):
        read_junit(bomb)
