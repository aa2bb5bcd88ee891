from __future__ import annotations

from typing import Any

import pytest

from firsthand.records import Evidence
from firsthand.rules import acceptance, definition_facts
from rules.forge import (
    ARGV,
    counts,
    definition,
    evidence,
    exited,
    judged,
    manifest,
    mutation_run,
    red,
    run,
    tool_call,
)


def review(**fields: Any) -> Evidence:
    values: dict[str, Any] = {"kind": "review", "stage": "final", "round": 1, "dispatch": judged()}
    return evidence(**{**values, **fields})


def codes(record: Evidence) -> set[tuple[str, str]]:
    problems = acceptance(record, definition_facts(record.definition))
    assert all(problem.message for problem in problems)
    return {(problem.code, problem.where) for problem in problems}


EVIDENCE = "review_verification_evidence"
BASELINE = "review_verification_baseline_failed"
CLEANUP = "review_verification_cleanup_unknown"


def test_a_green_check_and_one_catch_are_enough() -> None:
    assert codes(review()) == set()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"dispatch": judged("rejected")}, (EVIDENCE, "dispatch.judgement")),
        ({"dispatch": judged("blocked")}, (EVIDENCE, "dispatch.judgement")),
        ({"dispatch": judged(None)}, (EVIDENCE, "dispatch.judgement")),
        ({"dispatch": None}, (EVIDENCE, "dispatch")),
        ({"dispatch": judged(server_instances=0)}, (EVIDENCE, "dispatch.serverInstances")),
        ({"dispatch": judged(server_instances=2)}, (EVIDENCE, "dispatch.serverInstances")),
        ({"dispatch": judged(tool_calls=(tool_call(2),))}, (EVIDENCE, "dispatch.toolCalls[0].call")),
        (
            {"dispatch": judged(tool_calls=tuple(tool_call(number) for number in range(1, 34)))},
            (EVIDENCE, "dispatch.toolCalls[32]"),
        ),
        ({"execution": "none", "enclosing": None}, (EVIDENCE, "execution")),
        ({"runs": (), "mutations": (), "controls": ()}, (EVIDENCE, "c")),
        ({"runs": (red(1, "baseline"),)}, (BASELINE, "c")),
        ({"runs": (run(1), run(2, tests=counts(complete=False)))}, (BASELINE, "c")),
        ({"runs": (run(1, ended=exited(0, cleanup="unknown"), tests=counts()), run(2))}, (CLEANUP, "runs[0]")),
        ({"mutations": ()}, (EVIDENCE, "mutations")),
        ({"mutations": (mutation_run(verdict="survived", cause="check-stayed-green"),)}, (EVIDENCE, "mutations")),
        ({"mutations": (mutation_run(verdict="timeout", cause="deadline"),)}, (EVIDENCE, "mutations")),
        ({"runs": (run(1), red(5, "baseline"), run(6))}, (EVIDENCE, "mutations")),
        ({"manifest": manifest(present=False)}, (EVIDENCE, "manifest")),
        ({"definition": definition(checks=[])}, (EVIDENCE, "definition")),
        (
            {"voided": ("review_verification_copy_drift",)},
            ("review_verification_copy_drift", "voided[0]"),
        ),
        ({"voided": (CLEANUP,)}, (CLEANUP, "voided[0]")),
    ],
)
def test_each_condition_refuses_by_itself(fields: dict[str, Any], expected: tuple[str, str]) -> None:
    assert expected in codes(review(**fields))


def test_the_33rd_call_may_stand_there_refused() -> None:
    calls = (*(tool_call(number) for number in range(1, 33)), tool_call(33, "refused"))
    assert codes(review(dispatch=judged(tool_calls=calls))) == set()


def test_root_cause_may_lack_every_mutation_path_and_final_none_of_them() -> None:
    bare: dict[str, Any] = {"manifest": manifest(present=False), "mutations": (), "controls": (), "runs": (run(1),)}
    assert codes(review(stage="root-cause", **bare)) == set()
    assert codes(review(stage="final", **bare)) == {(EVIDENCE, "manifest")}
    # A path that is there must be caught in root-cause too.
    assert (EVIDENCE, "mutations") in codes(review(stage="root-cause", mutations=()))


def test_without_mutation_paths_no_catch_is_asked_for() -> None:
    assert codes(review(definition=definition(mutationPaths=[]), mutations=(), controls=(), runs=(run(1),))) == set()


@pytest.mark.parametrize(
    ("check", "accepted"),
    [
        ({"id": "c", "command": list(ARGV["exit"]), "runner": "exit"}, True),
        ({"id": "c", "command": list(ARGV["exit"])}, False),
    ],
)
def test_a_plain_exit_code_counts_only_where_the_definition_says_so(check: dict[str, Any], *, accepted: bool) -> None:
    record = review(
        definition=definition(checks=[check]),
        runs=(
            run(1, runner="exit"),
            run(2, "control", ended=exited(2), runner="exit"),
            run(3, "mutated", ended=exited(1), runner="exit"),
            run(4, "restored", runner="exit"),
        ),
        test_names=(),
        mutations=(mutation_run(cause="exit-code-only"),),
    )
    assert codes(record) == (set() if accepted else {(EVIDENCE, "mutations")})


def test_a_review_without_tools_runs_nothing() -> None:
    bare: dict[str, Any] = {
        "definition": '{"runId": "r"}',
        "execution": "none",
        "enclosing": None,
        "runs": (),
        "mutations": (),
        "controls": (),
        "test_names": (),
    }
    assert codes(review(**bare, dispatch=judged(server_instances=0))) == set()
    assert codes(review(**bare, dispatch=judged(server_instances=1))) == {(EVIDENCE, "dispatch.serverInstances")}
    served = judged(server_instances=0, tool_calls=(tool_call(1),))
    assert codes(review(**bare, dispatch=served)) == {(EVIDENCE, "dispatch.toolCalls")}
