from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.records import CheckRun, MutationCause, Outcome, RunnerName, Verdict
from firsthand.records import TestCounts as Counts
from firsthand.rules import (
    INTERRUPTIONS,
    REFUSALS,
    Restoration,
    control_shows,
    mutated_deadline_ms,
    mutated_deadline_s,
    mutation_verdict,
)
from rules.forge import FROZEN, OTHER, RED, TABLE, TABLES, counts, exited, outcome, red, run, table
from rules.test_status import outcomes, reports

EXACT = Restoration(FROZEN, 0o644, FROZEN, 0o644)
COUNTING: list[RunnerName] = ["pytest", "unittest", "node-test", "go-test", "cargo-test"]


def judge(runner: RunnerName = "pytest", **changes: Any) -> tuple[Verdict, MutationCause]:
    """A detected mutation but for the changes."""
    values: dict[str, Any] = {
        "before": run(1, runner=runner),
        "mutated": red(3, runner=runner),
        "after": run(4, "restored", runner=runner),
        "control": run(2, "control", ended=exited(2), runner=runner),
        "restoration": EXACT,
        "names": TABLES,
    }
    return mutation_verdict(**{**values, **changes})


def ended(end: Outcome, tests: Counts | None = None, runner: RunnerName = "pytest") -> CheckRun:
    return run(3, "mutated", ended=end, tests=tests, runner=runner)


@pytest.mark.parametrize("runner", COUNTING)
def test_the_one_way_to_a_catch(runner: RunnerName) -> None:
    assert judge(runner) == ("detected", "named-test-failed")


def test_a_plain_exit_code_is_labelled() -> None:
    broken = run(3, "mutated", ended=exited(1), runner="exit")
    assert judge("exit", mutated=broken) == ("detected", "exit-code-only")


@pytest.mark.parametrize("runner", COUNTING)
def test_a_green_mutated_run_survives(runner: RunnerName) -> None:
    assert judge(runner, mutated=run(3, "mutated", runner=runner)) == ("survived", "check-stayed-green")


@pytest.mark.parametrize("runner", [*COUNTING, "exit"])
@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (outcome("timed-out"), ("timeout", "deadline")),
        (outcome("signalled", signal=11), ("crash", "signal")),
        (outcome("output-limit", limit="memory"), ("crash", "output-limit")),
        (exited(128), ("crash", "signal-exit-code")),
        (exited(137), ("crash", "signal-exit-code")),
        (exited(255), ("crash", "signal-exit-code")),
        (outcome("could-not-start"), ("inconclusive", "could-not-start")),
        (outcome("sandbox-failed"), ("inconclusive", "sandbox-failed")),
        (exited(RED["pytest"], cleanup="unknown"), ("inconclusive", "cleanup-unknown")),
        (outcome("timed-out", cleanup="unknown"), ("inconclusive", "cleanup-unknown")),
        (exited(126), ("inconclusive", "unordinary-exit-code")),
        (exited(127), ("inconclusive", "unordinary-exit-code")),
    ],
)
def test_an_end_that_is_no_ordinary_failure_is_no_catch(
    runner: RunnerName, end: Outcome, expected: tuple[str, str]
) -> None:
    tests = counts({"t::a": "AssertionError"})
    assert judge(runner, mutated=ended(end, tests, runner)) == expected


@pytest.mark.parametrize("runner", COUNTING)
def test_every_exit_but_the_runners_own_is_no_catch(runner: RunnerName) -> None:
    tests = counts({"t::a": "AssertionError"})
    caught = {code for code in range(256) if judge(runner, mutated=ended(exited(code), tests, runner))[0] == "detected"}
    assert caught == {RED[runner]}


@pytest.mark.parametrize(
    ("tests", "cause"),
    [
        (None, "report-unreadable"),
        (counts({"t::a": "x"}, total_failed=9), "report-unreadable"),
        (counts({"t::a": "x"}, complete=False), "ended-early"),
        (counts(executed=0, names=None, complete=False), "ended-early"),
        (counts(), "report-contradicts-exit"),
        (counts(executed=0, names=None), "no-named-test"),
        (counts(total_failed=1), "no-named-test"),
        (counts({"t::other": "x"}), "failed-test-not-in-baseline"),
    ],
)
def test_a_failing_exit_without_a_named_test_of_the_baseline_is_no_catch(tests: Counts | None, cause: str) -> None:
    assert judge(mutated=ended(exited(1), tests)) == ("inconclusive", cause)


@pytest.mark.parametrize("runner", ["go-test", "cargo-test"])
def test_a_build_failure_names_no_test(runner: RunnerName) -> None:
    tests = counts(executed=0, names=None, complete=False)
    assert judge(runner, mutated=ended(exited(RED[runner]), tests, runner)) == ("inconclusive", "no-named-test")


@pytest.mark.parametrize(
    ("tests", "cause"),
    [
        (None, "report-unreadable"),
        (counts(complete=False), "ended-early"),
        (counts({"t::a": "x"}), "report-contradicts-exit"),
        (counts(executed=0, names=None), "no-tests"),
        (counts(executed=0, names=None, skipped=3), "no-tests"),
        (counts(executed=2, names=table("t::a", "t::b").digest), "counts-drifted"),
    ],
)
def test_exit_zero_that_proves_nothing_is_no_survivor(tests: Counts | None, cause: str) -> None:
    assert judge(mutated=ended(exited(0), tests)) == ("inconclusive", cause)


@pytest.mark.parametrize(
    ("failed", "expected"),
    [
        ({"t::a": "MemoryError"}, "crash"),
        ({"t::a": "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8 GiB"}, "crash"),
        ({"t::a": "OSError: [Errno 28] No space left on device: '/tmp/x'"}, "crash"),
        ({"t::a": "BlockingIOError: [Errno 11] Resource temporarily unavailable"}, "crash"),
        ({"t::a": "Error: EMFILE: too many open files, open 'x'"}, "crash"),
        ({"t::a": "RuntimeError: can't start new thread"}, "crash"),
        ({"t::a": "MemoryError", "t::b": "AssertionError: 1 != 2"}, "detected"),
        ({"t::a": "RecursionError: maximum recursion depth exceeded"}, "detected"),
    ],
)
def test_running_out_of_the_machine_is_no_catch(failed: dict[str, str], expected: str) -> None:
    verdict, cause = judge(mutated=red(3, failed=failed))
    assert verdict == expected
    assert (cause == "resource-exhausted") == (expected == "crash")


def test_running_out_is_seen_in_a_plain_exit_codes_last_line_too() -> None:
    broken = run(3, "mutated", ended=exited(1), runner="exit", stderr="Traceback\nMemoryError\n")
    assert judge("exit", mutated=broken) == ("crash", "resource-exhausted")


def test_a_summary_without_names_needs_the_same_count_and_a_test_that_is_no_stand_in() -> None:
    unnamed: dict[str, Any] = {
        "before": run(1, tests=counts(names=None)),
        "after": run(4, "restored", tests=counts(names=None)),
    }
    assert judge(**unnamed) == ("detected", "named-test-failed")
    fewer = red(3, executed=1, names=None)
    assert judge(**unnamed, mutated=fewer) == ("inconclusive", "counts-drifted")
    stand_in = red(3, failed={"value (unittest.loader._FailedTest.value)": "ImportError: x"}, names=None)
    assert judge(**unnamed, mutated=stand_in) == ("inconclusive", "failed-test-not-in-baseline")


def test_names_that_the_evidence_does_not_hold_are_no_names() -> None:
    assert judge(names={}) == ("inconclusive", "no-named-test")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"before": None}, ("inconclusive", "not-green-before")),
        ({"before": red(1, "baseline")}, ("inconclusive", "not-green-before")),
        ({"before": run(1, tests=counts(complete=False))}, ("inconclusive", "not-green-before")),
        ({"after": None}, ("inconclusive", "not-green-after")),
        ({"after": red(4, "restored")}, ("inconclusive", "not-green-after")),
        ({"mutated": None}, ("inconclusive", "cancelled")),
        ({"control": None}, ("inconclusive", "no-control")),
        ({"control": None, "mutated": None}, ("inconclusive", "no-control")),
        ({"control": run(2, "control", ended=outcome("timed-out"))}, ("inconclusive", "no-control")),
        ({"control": run(2, "control", ended=outcome("signalled", signal=9))}, ("inconclusive", "no-control")),
        ({"control": run(2, "control", ended=exited(1, cleanup="unknown"))}, ("inconclusive", "no-control")),
        ({"control": run(2, "control")}, ("not-exercised", "control-stayed-green")),
        ({"control": run(2, "control"), "mutated": None}, ("not-exercised", "control-stayed-green")),
        (
            {"control": red(2, "control", {"t::a": "AssertionError: 1 != 2"})},
            ("inconclusive", "same-failure-as-control"),
        ),
        ({"after": run(4, "restored", tests=counts(executed=4))}, ("inconclusive", "counts-drifted")),
        ({"after": run(4, "restored", tests=counts(names=OTHER))}, ("inconclusive", "counts-drifted")),
    ],
)
def test_what_surrounds_the_mutated_run_must_hold(changes: dict[str, Any], expected: tuple[str, str]) -> None:
    assert judge(**changes) == expected
    if "mutated" not in changes:
        # The same doubt takes a survivor away.
        green = judge(**changes, mutated=run(3, "mutated"))
        assert green[0] != "survived" or expected[1] == "same-failure-as-control"


@pytest.mark.parametrize(
    "restoration",
    [
        Restoration(FROZEN, 0o644, OTHER, 0o644),
        Restoration(FROZEN, 0o644, None, 0o644),
        Restoration(FROZEN, 0o644, FROZEN, 0o600),
        Restoration(FROZEN, 0o644, FROZEN, None),
        Restoration(None, None, None, None),
    ],
)
def test_bytes_and_mode_must_be_exactly_back(restoration: Restoration) -> None:
    assert judge(restoration=restoration) == ("inconclusive", "not-restored")
    assert judge(restoration=restoration, mutated=run(3, "mutated")) == ("inconclusive", "not-restored")


@pytest.mark.parametrize("cause", sorted(INTERRUPTIONS))
def test_an_interruption_only_lowers(cause: MutationCause) -> None:
    assert judge(interruption=cause) == ("inconclusive", cause)


@pytest.mark.parametrize("cause", sorted(set(get_args(MutationCause)) - INTERRUPTIONS))
def test_no_other_cause_passes_for_an_interruption(cause: MutationCause) -> None:
    with pytest.raises(ValueError, match="no interruption"):
        judge(interruption=cause)


def test_refusals_and_interruptions_are_different_things() -> None:
    assert not REFUSALS & INTERRUPTIONS


@pytest.mark.parametrize(
    ("timeout_ms", "slowest_ms", "deadline_ms"),
    [(60_000, 0, 5_000), (60_000, 600, 8_000), (60_000, 11_000, 60_000), (60_000, 54_000, 60_000), (1, 9, 1)],
)
def test_a_mutated_run_gets_five_seconds_and_five_baselines_within_the_limit(
    timeout_ms: int, slowest_ms: int, deadline_ms: int
) -> None:
    assert mutated_deadline_ms(timeout_ms, slowest_ms) == deadline_ms
    assert mutated_deadline_s(timeout_ms, slowest_ms) == deadline_ms / 1000


def runs(purpose: Any) -> st.SearchStrategy[CheckRun | None]:
    return st.none() | st.builds(
        lambda end, tests: run(1, purpose, ended=end, tests=tests), outcomes(), reports() | st.just(counts())
    )


SIDES = st.sampled_from([FROZEN, OTHER, None])


@given(
    runs("baseline") | st.just(run(1)),
    runs("mutated") | st.just(red(3)),
    runs("restored") | st.just(run(4, "restored")),
    runs("control") | st.just(run(2, "control", ended=exited(2))),
    st.builds(Restoration, SIDES, st.just(0o644), SIDES, st.just(0o644)),
    st.sampled_from([None, *sorted(INTERRUPTIONS)]),
)
def test_whatever_the_records_say_a_catch_is_a_catch(
    before: CheckRun | None,
    mutated: CheckRun | None,
    after: CheckRun | None,
    control: CheckRun | None,
    restoration: Restoration,
    interruption: MutationCause | None,
) -> None:
    verdict, cause = mutation_verdict(
        before=before,
        mutated=mutated,
        after=after,
        control=control,
        restoration=restoration,
        names=TABLES,
        interruption=interruption,
    )
    if verdict == "not-exercised":
        assert control is not None
        assert control.status == "passed"
    if verdict not in {"detected", "survived"}:
        return
    assert interruption is None
    assert before is not None and after is not None and mutated is not None  # noqa: PT018 - narrows three at once
    assert before.status == after.status == "passed"
    assert control_shows(control) is None
    assert restoration.original_sha256 == restoration.restored_sha256 != None  # noqa: E711 - a chain
    end = mutated.command.outcome
    assert end.kind == "exited"
    if verdict == "survived":
        assert mutated.status == "passed"
        return
    assert cause == "named-test-failed"
    assert end.exit_code == 1
    assert mutated.tests is not None
    assert mutated.tests.complete
    assert before.tests is not None
    if before.tests.names is not None:
        assert {failure.name for failure in mutated.tests.failures} & set(TABLE.names)
