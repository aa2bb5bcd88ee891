from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.canonical import canonical_bytes
from firsthand.checks.counting.tally import (
    MESSAGE_CHARACTERS,
    MOST_TESTS,
    NAME_CHARACTERS,
    SingleTest,
    UnreadableReportError,
    bare_counts,
    first_line,
    shown_name,
    tally,
)
from firsthand.rules import LIMIT_FAILURES, is_consistent


def test_of_two_reports_of_one_test_the_worse_counts() -> None:
    for order in (("passed", "failed", "skipped"), ("failed", "skipped", "passed"), ("skipped", "passed", "failed")):
        counted = tally("report", [SingleTest("a", state) for state in order], complete=True)
        assert (counted.tests.executed, counted.tests.failed, counted.tests.skipped) == (1, 1, 0)


def test_only_the_first_failures_are_kept_and_all_are_counted() -> None:
    counted = tally("report", [SingleTest(f"t{n:03}", "failed") for n in range(100)], complete=True)
    assert counted.tests.failed == 100
    assert [failure.name for failure in counted.tests.failures] == [f"t{n:03}" for n in range(LIMIT_FAILURES)]
    assert is_consistent(counted.tests)


def test_too_many_tests_are_unreadable() -> None:
    with pytest.raises(UnreadableReportError):
        tally("report", (SingleTest(str(number), "passed") for number in range(MOST_TESTS + 1)), complete=True)


def test_a_message_is_its_first_line_and_bounded() -> None:
    assert first_line("\n  \n  AssertionError: x\nmore") == "AssertionError: x"
    assert first_line("x" * 999) == "x" * MESSAGE_CHARACTERS
    assert first_line(" \n ") == ""


def test_long_names_stay_different() -> None:
    one, other = ("x" * NAME_CHARACTERS + letter for letter in "ab")
    assert shown_name(one) != shown_name(other)
    assert len(shown_name(one)) == NAME_CHARACTERS + 17
    assert shown_name("x" * NAME_CHARACTERS) == "x" * NAME_CHARACTERS


def test_counts_that_can_not_be_are_pulled_together() -> None:
    counted = bare_counts(executed=-1, failed=3, skipped=-2, failures=[("a", "")], complete=True)
    assert (counted.tests.executed, counted.tests.failed, counted.tests.skipped) == (0, 0, 0)
    assert is_consistent(counted.tests)


NAMES = st.text(st.characters(), max_size=8)


@given(st.lists(st.builds(SingleTest, NAMES, st.sampled_from(["passed", "failed", "skipped"]), NAMES), max_size=8))
def test_whatever_a_report_names_can_be_sealed(tests: list[SingleTest]) -> None:
    counted = tally("report", tests, complete=True)
    assert is_consistent(counted.tests)
    assert counted.tests.executed + counted.tests.skipped == len({shown_name(test.name) for test in tests})
    canonical_bytes(counted.tests.as_json())
    if counted.names is not None:
        canonical_bytes(counted.names.as_json())
        assert counted.tests.names == counted.names.digest
