from __future__ import annotations

from typing import Any

import pytest

from firsthand.errors import EXIT_STATUS_BY_CODE
from firsthand.rules import definition_facts, evidence_status, exit_status
from rules.forge import counts, definition, evidence, exited, judged, mutation_run, outcome, red, run

DRIFT = "review_verification_copy_drift"
BASELINE = "review_verification_baseline_failed"
CLEANUP = "review_verification_cleanup_unknown"
LOST = exited(0, cleanup="unknown")


def conclude(**fields: Any) -> tuple[str, str, int]:
    record = evidence(**fields)
    status, code = evidence_status(record, definition_facts(record.definition))
    return status, code, exit_status(code)


@pytest.mark.parametrize(
    ("runs", "voided", "expected"),
    [
        ((run(1),), (), ("passed", "", 0)),
        ((red(1, "baseline"),), (), ("failed", BASELINE, 1)),
        ((run(1), red(2, "baseline")), (), ("failed", BASELINE, 1)),
        ((red(1, "baseline"), run(2)), (), ("passed", "", 0)),
        ((run(1, ended=outcome("timed-out")),), (), ("failed", BASELINE, 1)),
        ((run(1, ended=outcome("sandbox-failed")),), (), ("unknown", "check_inconclusive", 4)),
        ((run(1, tests=counts(executed=0)),), (), ("unknown", "check_inconclusive", 4)),
        ((run(1, ended=LOST, tests=counts()),), (CLEANUP,), ("unknown", CLEANUP, 4)),
        ((run(1),), (CLEANUP,), ("unknown", CLEANUP, 4)),
        ((run(1),), (DRIFT,), ("failed", DRIFT, 1)),
        ((run(1),), ("isolation-breach",), ("unknown", "check_inconclusive", 4)),
        ((), (), ("unknown", "check_inconclusive", 4)),
        # Negative before unknown.
        ((run(1, ended=LOST, tests=counts()), red(2, "baseline")), (CLEANUP,), ("failed", BASELINE, 1)),
    ],
)
def test_checks(runs: Any, voided: Any, expected: tuple[str, str, int]) -> None:
    assert conclude(kind="check", runs=runs, voided=voided, mutations=(), controls=()) == expected


def test_a_check_that_never_ran_is_not_passed() -> None:
    two = definition(checks=[{"id": "c", "command": ["pytest"]}, {"id": "d", "command": ["pytest"]}])
    assert conclude(kind="check", definition=two, runs=(run(1),))[:2] == ("unknown", "check_inconclusive")


DETECTED = mutation_run()
SURVIVED = mutation_run(verdict="survived", cause="check-stayed-green")
UNUSED = mutation_run(verdict="not-exercised", cause="control-stayed-green")
REFUSED = mutation_run(verdict="not-applied", cause="old-absent")
TIMEOUT = mutation_run(verdict="timeout", cause="deadline")
UNSURE = mutation_run(verdict="inconclusive", cause="ended-early")


@pytest.mark.parametrize(
    ("mutations", "expected"),
    [
        ((DETECTED,), ("passed", "", 0)),
        ((DETECTED, SURVIVED), ("failed", "mutation_survived", 1)),
        ((DETECTED, UNUSED), ("failed", "mutation_survived", 1)),
        ((DETECTED, TIMEOUT), ("unknown", "mutation_inconclusive", 4)),
        ((DETECTED, UNSURE), ("unknown", "mutation_inconclusive", 4)),
        ((SURVIVED, UNSURE), ("failed", "mutation_survived", 1)),
        ((DETECTED, REFUSED), ("refused", "mutation_not_applied", 2)),
        ((REFUSED,), ("refused", "mutation_not_applied", 2)),
        ((SURVIVED, REFUSED), ("refused", "mutation_not_applied", 2)),
        ((), ("unknown", "mutation_inconclusive", 4)),
    ],
)
def test_mutations(mutations: Any, expected: tuple[str, str, int]) -> None:
    assert conclude(mutations=mutations) == expected


def test_a_red_baseline_after_the_catch_is_negative() -> None:
    runs = (*evidence().runs, red(5, "baseline"))
    assert conclude(runs=runs) == ("failed", BASELINE, 1)
    # Green again, but the catch is gone.
    assert conclude(runs=(*runs, run(6))) == ("unknown", "mutation_inconclusive", 4)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ("passed", "", 0)),
        ({"dispatch": judged("rejected")}, ("failed", "review_rejected", 1)),
        ({"dispatch": judged("blocked")}, ("failed", "review_blocked", 1)),
        ({"dispatch": judged(None)}, ("unknown", "round_unknown", 4)),
        ({"dispatch": None}, ("unknown", "round_unknown", 4)),
        ({"mutations": ()}, ("failed", "review_verification_evidence", 1)),
        ({"runs": (red(1, "baseline"),)}, ("failed", BASELINE, 1)),
        ({"voided": (DRIFT,), "dispatch": judged(None)}, ("failed", DRIFT, 1)),
        ({"voided": ("isolation-breach",)}, ("failed", "isolation-breach", 1)),
        ({"voided": (CLEANUP,)}, ("unknown", CLEANUP, 4)),
        ({"voided": (CLEANUP,), "dispatch": judged("rejected")}, ("failed", "review_rejected", 1)),
    ],
)
def test_reviews(fields: dict[str, Any], expected: tuple[str, str, int]) -> None:
    assert conclude(**{"kind": "review", "stage": "final", "round": 1, "dispatch": judged(), **fields}) == expected


def test_a_code_that_is_not_in_the_table_has_no_exit_status() -> None:
    with pytest.raises(KeyError):
        exit_status("no such code")
    assert {exit_status(code) for code in EXIT_STATUS_BY_CODE} == {1, 2, 3, 4}
