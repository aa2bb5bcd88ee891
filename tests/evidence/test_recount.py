"""The widened and the rearranged, resealed, and caught by the rules that the live path uses."""

from __future__ import annotations

from typing import Any

import pytest

from evidence.builder import (
    SOURCE,
    check_evidence,
    digest,
    forged,
    mutate_evidence,
    mutation,
    run,
)
from evidence.judging import Change, found, put
from evidence.reviews import review_evidence
from firsthand.evidence import seal, verify
from firsthand.records import Evidence


class TestRules:
    """The widened and the rearranged, caught by the same rules that the live path uses."""

    @pytest.mark.parametrize(
        ("change", "where"),
        [
            (put("mutations", 0, "verdict", to="survived"), "mutations[0].verdict"),
            (put("mutations", 0, "cause", to="exit-code-only"), "mutations[0].verdict"),
            (put("mutations", 0, "before", to=1), "mutations[0].before"),
            (put("mutations", 0, "mutated", to=6), "mutations[1].mutated"),
            (put("mutations", 0, "mutated", to=5), "mutations[0].mutated"),
            (put("mutations", 0, "mutated", to=99), "mutations[0].mutated"),
            (put("mutations", 0, "after", to=7), "mutations[0].after"),
            (put("mutations", 0, "originalSha256", to="0" * 64), "mutations[0].originalSha256"),
            (put("mutations", 0, "mutatedSha256", to=digest(SOURCE)), "mutations[0].mutatedSha256"),
            (put("mutations", 0, "restoredSha256", to="0" * 64), "mutations[0].verdict"),
            (put("mutations", 0, "restoredMode", to=0o600), "mutations[0].verdict"),
            (put("mutations", 0, "offsetBytes", to=10_000), "mutations[0].offsetBytes"),
            (put("mutations", 0, "deadlineMs", to=60_000), "mutations[0].deadlineMs"),
            (put("mutations", 0, "mutation", "path", to="tests/test_value.py"), "mutations[0].mutation"),
            (put("controls", to=[]), "mutations[0].verdict"),
            (put("controls", 0, "run", to=3), "controls[0].run"),
            (put("runs", 3, "status", to="passed"), "runs[3].status"),
            (put("runs", 3, "cause", to="signalled"), "runs[3].status"),
            (put("runs", 3, "command", "outcome", "exitCode", to=2), "mutations[0].verdict"),
            (put("runs", 3, "command", "outcome", "cleanup", to="unknown"), "runs[3].status"),
            (put("runs", 3, "checkId", to="other"), "runs[3].checkId"),
            (put("runs", 3, "purpose", to="baseline"), "mutations[0].mutated"),
            (put("runs", 3, "lane", to=1), "mutations[0].mutated"),
            (put("runs", 3, "tests", "failures", to=[]), "mutations[0].verdict"),
            (put("runs", 3, "tests", "complete", to=False), "mutations[0].verdict"),
            (put("runs", 0, "tests", "executed", to=0), "runs[0].status"),
            (put("testNames", 0, "names", to=["other"]), "testNames[0].digest"),
            (put("testNames", to=[]), "runs[0].tests.names"),
            (put("unprobed", to=["src/value.py"]), "unprobed"),
            (lambda body: body["runs"].pop(0), "runs[0].run"),
            (lambda body: body["runs"].pop(), "mutations[1].after"),
            (lambda body: body["runs"].insert(0, body["runs"][0]), "runs[1].run"),
            (lambda body: body["runs"].reverse(), "runs[0].run"),
            (lambda body: body["mutations"].pop(), "runs[5]"),
            (lambda body: body["mutations"].append(body["mutations"][0]), "mutations[2].mutated"),
            (lambda body: body["controls"].append(body["controls"][0]), "controls[1]"),
        ],
    )
    def test_a_change_in_the_records(self, change: Change, where: str) -> None:
        found(forged(mutate_evidence(), change), where)

    def test_a_restored_run_without_what_was_restored(self) -> None:
        def change(body: Any) -> None:
            body["runs"].append(body["runs"][-1] | {"run": 8})

        found(forged(mutate_evidence(), change), "runs[7]", "restored")

    @pytest.mark.parametrize(
        ("evidence", "status", "code"),
        [
            (mutate_evidence(), "failed", "mutation_survived"),
            (check_evidence(), "unknown", "check_inconclusive"),
            (review_evidence(), "failed", "review_rejected"),
        ],
    )
    def test_a_status_that_does_not_follow(self, evidence: Evidence, status: str, code: str) -> None:
        found(forged(evidence, lambda body: body.update(status=status, code=code)), "status", "the records make it")

    def test_a_rejection_made_an_approval(self) -> None:
        rejected = forged(review_evidence(), lambda body: body["dispatch"]["judgement"].update(verdict="rejected"))
        found(rejected, "status", "review_rejected")

    def test_a_second_server_is_no_approval(self) -> None:
        found(forged(review_evidence(), put("dispatch", "serverInstances", to=2)), "status")

    def test_a_survivor_made_a_catch(self) -> None:
        """All that belongs to the survivor's green run is kept; only the verdict is widened."""
        survivor = mutation(3).model_copy(update={"verdict": "survived", "cause": "check-stayed-green"})
        runs = mutate_evidence(1).runs
        honest = mutate_evidence(
            1,
            runs=(*runs[:3], run(4, "mutated"), runs[4]),
            mutations=(survivor,),
            unprobed=("src/value.py",),
            status="failed",
            code="mutation_survived",
        )
        assert verify(seal(honest)).valid

        def widened(body: Any) -> None:
            body["mutations"][0].update(verdict="detected", cause="named-test-failed")
            body.update(unprobed=[], status="passed", code="")

        found(forged(honest, widened), "mutations[0].verdict", "the runs make it survived")

    def test_nothing_at_all_does_not_pass(self) -> None:
        found(forged(check_evidence(), lambda body: body.update(runs=[], testNames=[])), "status")
        empty = mutate_evidence(0)
        assert empty.mutations == ()
        found(seal(empty), "unprobed")
        found(seal(mutate_evidence(0, unprobed=("src/value.py",))), "status")
