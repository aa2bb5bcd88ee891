from __future__ import annotations

from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.records import CheckStatus, Cleanup, FailedTest, LimitName, Outcome, OutcomeKind, RunnerName
from firsthand.records import TestCounts as Counts
from firsthand.rules import check_status
from rules.forge import counts, exited, outcome

COUNTING: list[RunnerName] = ["pytest", "unittest", "node-test", "go-test", "cargo-test"]
RUNNERS: list[RunnerName] = [*COUNTING, "exit"]
RANK: dict[CheckStatus, int] = {"unknown": 0, "failed": 1, "inconclusive": 2, "passed": 3}


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize(
    ("ended", "status", "cause"),
    [
        (outcome("sandbox-failed"), "unknown", "sandbox-failed"),
        (outcome("signalled", signal=11), "failed", "signalled"),
        (outcome("timed-out"), "failed", "timed-out"),
        (outcome("output-limit"), "failed", "output-limit"),
        (outcome("could-not-start"), "failed", "could-not-start"),
        *((exited(code), "failed", "exit-nonzero") for code in (1, 2, 3, 4, 5, 101, 126, 127)),
        *((exited(code), "failed", "signal-exit-code") for code in (128, 134, 137, 139, 255)),
    ],
)
def test_no_report_changes_an_end_that_is_not_exit_zero(
    runner: RunnerName, ended: Outcome, status: CheckStatus, cause: str
) -> None:
    for tests in (None, counts(), counts({"t::a": "x"}), counts(complete=False)):
        assert check_status(runner, ended, tests) == (status, cause)


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("kind", get_args(OutcomeKind))
def test_an_unknown_clean_up_comes_before_everything(runner: RunnerName, kind: OutcomeKind) -> None:
    fields = {"exited": {"exit_code": 0}, "signalled": {"signal": 9}}.get(kind, {})
    ended = outcome(kind, cleanup="unknown", **fields)
    assert check_status(runner, ended, counts()) == ("unknown", "cleanup-unknown")


@pytest.mark.parametrize("runner", COUNTING)
@pytest.mark.parametrize(
    ("tests", "status", "cause"),
    [
        (counts(), "passed", "exit-zero"),
        (counts(skipped=9), "passed", "exit-zero"),
        (None, "inconclusive", "report-unreadable"),
        (counts(executed=0, names=None), "inconclusive", "no-tests"),
        (counts(executed=0, names=None, skipped=2), "inconclusive", "all-skipped"),
        (counts(complete=False), "inconclusive", "ended-early"),
        (counts(executed=0, names=None, complete=False), "inconclusive", "ended-early"),
        (counts({"t::a": "x"}), "inconclusive", "report-contradicts-exit"),
        (counts(total_failed=4), "inconclusive", "report-unreadable"),
        (counts({"t::a": "x"}, total_failed=0), "inconclusive", "report-unreadable"),
    ],
)
def test_exit_zero_is_green_only_with_a_finished_green_report(
    runner: RunnerName, tests: Counts | None, status: CheckStatus, cause: str
) -> None:
    assert check_status(runner, exited(0), tests) == (status, cause)


@pytest.mark.parametrize("order", [("t::b", "t::a"), ("t::a", "t::a")])
def test_failures_out_of_order_or_twice_are_unreadable(order: tuple[str, str]) -> None:
    tests = counts().model_copy(
        update={"failed": 2, "failures": tuple(FailedTest(name=name, message="") for name in order)}
    )
    assert check_status("pytest", exited(0), tests) == ("inconclusive", "report-unreadable")


def test_a_plain_exit_code_counts_nothing() -> None:
    assert check_status("exit", exited(0), None) == ("passed", "exit-zero")
    assert check_status("exit", exited(0), counts({"t::a": "x"})) == ("passed", "exit-zero")


def outcomes() -> st.SearchStrategy[Outcome]:
    def build(kind: OutcomeKind, code: int, cleanup: Cleanup, limit: LimitName) -> Outcome:
        by_kind: dict[str, dict[str, Any]] = {
            "exited": {"exit_code": code},
            "signalled": {"signal": code},
            "output-limit": {"limit": limit},
        }
        fields = by_kind.get(kind, {})
        return Outcome(kind=kind, cleanup=cleanup, duration_ms=1, **fields)

    return st.builds(
        build,
        st.sampled_from(get_args(OutcomeKind)),
        st.one_of(st.sampled_from([0, 1, 101]), st.integers(0, 255)),
        st.sampled_from(get_args(Cleanup)),
        st.sampled_from(get_args(LimitName)),
    )


def reports() -> st.SearchStrategy[Counts | None]:
    failure = st.builds(FailedTest, name=st.sampled_from(["t::a", "t::b", "x"]), message=st.text(max_size=5))
    return st.none() | st.builds(
        Counts,
        source=st.sampled_from(["report", "summary"]),
        executed=st.integers(0, 4),
        failed=st.integers(0, 4),
        skipped=st.integers(0, 2),
        failures=st.lists(failure, max_size=3).map(tuple),
        names=st.sampled_from([None, "a" * 64]),
        complete=st.booleans(),
    )


@given(st.sampled_from(COUNTING), outcomes(), reports())
def test_no_report_is_ever_better_than_the_exit_code_alone(
    runner: RunnerName, ended: Outcome, tests: Counts | None
) -> None:
    with_report, _ = check_status(runner, ended, tests)
    without, _ = check_status("exit", ended, None)
    assert RANK[with_report] <= RANK[without]


@given(st.sampled_from(RUNNERS), outcomes(), reports())
def test_green_needs_exit_zero_and_a_known_end(runner: RunnerName, ended: Outcome, tests: Counts | None) -> None:
    status, cause = check_status(runner, ended, tests)
    proved = ended.kind == "exited" and ended.exit_code == 0 and ended.cleanup != "unknown"
    assert (status == "passed") <= proved
    assert (status == "passed") == (cause == "exit-zero")


def test_every_pair_of_status_and_cause_is_one_of_the_table() -> None:
    ends = [exited(code) for code in range(256)] + [outcome("timed-out"), outcome("signalled", signal=6)]
    seen = {
        check_status(runner, end, tests)
        for runner, end, tests in product(RUNNERS, ends, (None, counts(), counts(executed=0)))
    }
    assert seen == {
        ("passed", "exit-zero"),
        ("failed", "exit-nonzero"),
        ("failed", "signal-exit-code"),
        ("failed", "timed-out"),
        ("failed", "signalled"),
        ("inconclusive", "report-unreadable"),
        ("inconclusive", "no-tests"),
    }
