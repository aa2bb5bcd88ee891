from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.records import Evidence, Mutation, MutationRun
from firsthand.rules import definition_facts, record_problems
from rules.forge import (
    FROZEN,
    OTHER,
    control,
    counts,
    definition,
    evidence,
    exited,
    manifest,
    mutation_run,
    outcome,
    red,
    run,
    table,
)


def wheres(record: Evidence) -> set[str]:
    return {problem.where for problem in record_problems(record, definition_facts(record.definition))}


SOUND = evidence()
RUNS = SOUND.runs


def test_sound_records_have_no_problem() -> None:
    assert wheres(SOUND) == set()


def asked(**fields: Any) -> MutationRun:
    values = {"check": "c", "path": "src/value.py", "old": "a + b", "new": "a - b", **fields}
    return mutation_run(mutation=Mutation(**values))


def refused(cause: str, **fields: Any) -> MutationRun:
    nothing = dict.fromkeys(
        ("before", "mutated", "after", "offset_bytes", "original_sha256", "mutated_sha256", "deadline_ms"), None
    )
    return asked(**fields).model_copy(update={**nothing, "verdict": "not-applied", "cause": cause})


BARE: dict[str, Any] = {"runs": (), "test_names": (), "controls": (), "unprobed": ("src/value.py",)}


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        # Runs: dropped, moved, of another check, widened.
        ({"runs": RUNS[:2] + RUNS[3:]}, "runs[2].run"),
        ({"runs": (RUNS[1], RUNS[0], *RUNS[2:])}, "runs[0].run"),
        ({"runs": (*RUNS, RUNS[3])}, "runs[4].run"),
        ({"runs": (*RUNS, run(5, check="x"))}, "runs[4].checkId"),
        ({"runs": (*RUNS, run(5, runner="exit"))}, "runs[4].runner"),
        ({"runs": (*RUNS, run(5, runner="exit"))}, "runs[4].command.argv"),
        ({"runs": (*RUNS, red(5, "baseline").model_copy(update={"status": "passed"}))}, "runs[4].status"),
        ({"runs": (*RUNS, run(5).model_copy(update={"cause": "no-tests"}))}, "runs[4].status"),
        ({"runs": (*RUNS, run(5, tests=counts(names=OTHER)))}, "runs[4].tests.names"),
        (
            {"runs": (*RUNS, red(5, "baseline", {f"t::{n:03}": "" for n in range(65)}, executed=70))},
            "runs[4].tests.failures",
        ),
        # Names.
        ({"test_names": ()}, "runs[0].tests.names"),
        ({"test_names": (*SOUND.test_names, *SOUND.test_names)}, "testNames[1]"),
        ({"test_names": (*SOUND.test_names, table("t::a"))}, "testNames[1]"),
        ({"test_names": (SOUND.test_names[0].model_copy(update={"names": ("t::a",)}),)}, "testNames[0].digest"),
        ({"test_names": (table("t::b", "t::a"),)}, "testNames[0].names"),
        # Controls.
        ({"controls": ()}, "runs[1]"),
        ({"controls": (control(), control())}, "controls[1]"),
        ({"controls": (control(run=3),)}, "controls[0].run"),
        ({"controls": (control(run=9),)}, "controls[0].run"),
        ({"controls": (control(mutated_sha256=FROZEN),)}, "controls[0].mutatedSha256"),
        ({"controls": (control(mutated_sha256=None),)}, "controls[0].mutatedSha256"),
        ({"controls": (control(path="other.py"),)}, "controls[0].mutatedSha256"),
        ({"controls": (control(restored_sha256=OTHER),)}, "controls[0].restoredSha256"),
        # Mutations: widened, borrowed, out of order.
        ({"mutations": ()}, "runs[2]"),
        ({"mutations": (mutation_run(), mutation_run())}, "mutations[1].mutated"),
        ({"mutations": (mutation_run(verdict="survived", cause="check-stayed-green"),)}, "mutations[0].verdict"),
        ({"mutations": (mutation_run(cause="exit-code-only"),)}, "mutations[0].verdict"),
        ({"mutations": (mutation_run(verdict="crash", cause="signal"),)}, "mutations[0].verdict"),
        ({"mutations": (mutation_run(cause="cancelled"),)}, "mutations[0].verdict"),
        ({"mutations": (mutation_run(restored_sha256=OTHER),)}, "mutations[0].verdict"),
        ({"mutations": (mutation_run(restored_mode=0o600),)}, "mutations[0].verdict"),
        ({"mutations": (mutation_run(after=None),)}, "mutations[0].verdict"),
        ({"mutations": (mutation_run(mutated=9),)}, "mutations[0].mutated"),
        ({"mutations": (mutation_run(mutated=4),)}, "mutations[0].mutated"),
        ({"mutations": (mutation_run(before=4),)}, "mutations[0].before"),
        ({"mutations": (mutation_run(after=1),)}, "mutations[0].after"),
        ({"mutations": (mutation_run(lane=1),)}, "mutations[0].mutated"),
        ({"mutations": (mutation_run(deadline_ms=60_000),)}, "mutations[0].deadlineMs"),
        ({"mutations": (mutation_run(deadline_ms=None),)}, "mutations[0].deadlineMs"),
        ({"mutations": (mutation_run(original_sha256=OTHER),)}, "mutations[0].originalSha256"),
        ({"mutations": (mutation_run(mutated_sha256=FROZEN),)}, "mutations[0].mutatedSha256"),
        ({"mutations": (mutation_run(offset_bytes=99),)}, "mutations[0].offsetBytes"),
        ({"mutations": (mutation_run(offset_bytes=None),)}, "mutations[0].offsetBytes"),
        ({"mutations": (asked(path="test_value.py"),)}, "mutations[0].mutation"),
        ({"mutations": (asked(check="x"),)}, "mutations[0].mutation"),
        ({"mutations": (asked(new="a + b"),)}, "mutations[0].mutation"),
        ({"mutations": (asked(old=""),)}, "mutations[0].mutation"),
        ({"mutations": (asked(new="x" * 16385),)}, "mutations[0].mutation"),
        # Refusals that do not hold, or that hide a run.
        ({**BARE, "mutations": (refused("old-equals-new"),)}, "mutations[0].cause"),
        ({**BARE, "mutations": (refused("too-large"),)}, "mutations[0].cause"),
        ({**BARE, "mutations": (refused("path-not-registered"),)}, "mutations[0].cause"),
        ({**BARE, "mutations": (refused("path-missing"),)}, "mutations[0].cause"),
        ({**BARE, "mutations": (refused("check-not-registered"),)}, "mutations[0].cause"),
        ({**BARE, "mutations": (refused("named-test-failed"),)}, "mutations[0].cause"),
        ({"mutations": (refused("old-absent").model_copy(update={"mutated": 3}),)}, "mutations[0]"),
        # Unprobed.
        ({"unprobed": ("src/value.py",)}, "unprobed"),
        ({"manifest": manifest(present=False)}, "mutations[0].originalSha256"),
    ],
)
def test_a_record_that_the_others_do_not_bear_out_is_found(fields: dict[str, Any], where: str) -> None:
    assert where in wheres(evidence(**fields))


@pytest.mark.parametrize(
    "mutation",
    [
        refused("old-absent"),
        refused("old-not-unique"),
        refused("not-utf-8"),
        refused("old-equals-new", new="a + b"),
        refused("too-large", new="x" * 16385),
        refused("path-not-registered", path="test_value.py"),
        refused("check-not-registered", check="x"),
    ],
)
def test_a_refusal_that_holds_is_none(mutation: MutationRun) -> None:
    assert wheres(evidence(**BARE, mutations=(mutation,))) == set()


def test_counts_of_a_plain_exit_code_are_a_forgery() -> None:
    text = definition(checks=[{"id": "c", "command": ["pytest", "-q"], "runner": "exit"}], mutationPaths=[])
    forged = run(1).model_copy(update={"runner": "exit"})
    record = evidence(definition=text, runs=(forged,), controls=(), mutations=())
    assert wheres(record) == {"runs[0].tests"}


def test_a_before_that_skips_a_red_run_is_found() -> None:
    # The check was red just before; the mutation claims an older green run.
    runs = (run(1), red(2, "baseline"), red(3), run(4, "restored"))
    assert "mutations[0].before" in wheres(evidence(runs=runs, controls=()))


def test_an_after_that_skips_a_red_run_is_found() -> None:
    runs = (*RUNS[:3], red(4, "restored"), run(5, "restored"))
    assert "mutations[0].after" in wheres(evidence(runs=runs, mutations=(mutation_run(after=5),)))


def test_a_run_between_replace_and_restore_in_the_same_lane_is_found() -> None:
    runs = (*RUNS[:3], run(4), run(5, "restored"))
    assert "mutations[0].after" in wheres(evidence(runs=runs, mutations=(mutation_run(after=5),)))


def test_runs_of_another_lane_between_are_none() -> None:
    runs = (run(1), run(2, "control", ended=exited(2)), run(3, lane=1), red(4), run(5, lane=1), run(6, "restored"))
    assert wheres(evidence(runs=runs, mutations=(mutation_run(mutated=4, after=6),))) == set()


def test_a_large_forgery_takes_no_long_time() -> None:
    # Every run red, every mutation a catch: what looks each one up by walking all the others would take minutes.
    many = 3_000
    runs = tuple(red(number, "baseline" if number % 2 else "mutated") for number in range(1, 2 * many + 1))
    catches = tuple(
        mutation_run(before=number - 1, mutated=number, after=number + 1) for number in range(2, 2 * many, 2)
    )
    record = evidence(runs=runs, mutations=catches, controls=(), unprobed=("src/value.py",))
    begun = time.process_time()
    assert len(wheres(record)) > many
    assert time.process_time() - begun < 10


CHANGES: list[Callable[[MutationRun], MutationRun]] = [
    lambda mutation: mutation.model_copy(update={"verdict": "detected", "cause": "named-test-failed"}),
    lambda mutation: mutation.model_copy(update={"verdict": "survived", "cause": "check-stayed-green"}),
]


@given(
    st.sampled_from(CHANGES),
    st.sampled_from(
        [
            outcome("timed-out"),
            outcome("signalled", signal=9),
            outcome("output-limit"),
            outcome("could-not-start"),
            outcome("sandbox-failed"),
            *(exited(code) for code in (2, 3, 4, 5, 101, 126, 137)),
        ]
    ),
    st.sampled_from([None, counts(), counts({"t::a": "AssertionError"}), counts(complete=False)]),
)
def test_no_end_but_an_ordinary_failure_can_be_passed_off_as_a_catch_or_a_survivor(
    widen: Callable[[MutationRun], MutationRun], end: Any, tests: Any
) -> None:
    mutated = run(3, "mutated", ended=end, tests=tests)
    record = evidence(runs=(*RUNS[:2], mutated, RUNS[3]), mutations=(widen(mutation_run()),))
    assert "mutations[0].verdict" in wheres(record)
