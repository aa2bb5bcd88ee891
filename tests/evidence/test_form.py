"""Evidence that no command of Firsthand would write."""

from __future__ import annotations

from typing import Any

import pytest

from evidence.builder import (
    check_evidence,
    forged,
    mutate_evidence,
    run,
)
from evidence.judging import Change, found, put
from evidence.reviews import review_evidence, tool_less_evidence
from firsthand.evidence.form import LIMIT_MUTATIONS, LIMIT_RUNS
from firsthand.mutation.plan import LIMIT_MUTATIONS as PLAN_LIMIT
from firsthand.records import Evidence


class TestForm:
    @pytest.mark.parametrize(
        ("evidence", "change", "where"),
        [
            (check_evidence(), put("stage", to="final"), "stage"),
            (check_evidence(), put("round", to=1), "round"),
            (check_evidence(), put("reviewRuntime", to="claude"), "reviewRuntime"),
            (check_evidence(), put("isolation", to={"level": "os-sandbox", "reason": None, "auth": None}), "isolation"),
            (review_evidence(), put("dispatch", to=None), "dispatch"),
            (review_evidence(), put("stage", to=None), "stage"),
            (review_evidence(), put("isolation", "level", to="os-sandbox"), "isolation.reason"),
            (review_evidence(), put("isolation", "reason", to=None), "isolation.reason"),
            (check_evidence(), put("enclosing", to=None), "enclosing"),
            (check_evidence(), put("execution", to="none"), "execution"),
            (tool_less_evidence(), put("execution", to="sandboxed"), "enclosing"),
            (mutate_evidence(), put("kind", to="check"), "kind"),
            (check_evidence(), put("code", to="evidence_invalid"), "code"),
            (check_evidence(), put("status", to="failed"), "code"),
            (check_evidence(), put("voided", to=["nonsense"]), "voided[0]"),
            (check_evidence(), put("startedAt", to="yesterday"), "startedAt"),
            (check_evidence(), put("startedAt", to="2026-01-02T03:04:05+01:00"), "startedAt"),
        ],
    )
    def test_what_no_command_writes(self, evidence: Evidence, change: Change, where: str) -> None:
        found(forged(evidence, change), where)

    def test_an_unknown_code(self) -> None:
        def change(body: Any) -> None:
            body.update(status="failed", code="nonsense")

        found(forged(check_evidence(), change), "code", "not a code")

    def test_records_of_commands_where_none_ran(self) -> None:
        found(forged(tool_less_evidence(), put("runs", to=[run(1).as_json()])), "runs")

    def test_more_records_than_any_command_makes(self) -> None:
        """So that no file of 64 MiB can keep the rules busy for hours."""

        def many(name: str, count: int) -> Change:
            def change(body: Any) -> None:
                body[name] *= count

            return change

        found(forged(mutate_evidence(1), many("mutations", LIMIT_MUTATIONS + 1)), "mutations", "more than 1000")
        found(forged(check_evidence(), many("runs", LIMIT_RUNS + 1)), "runs", "more than 4096")
        assert LIMIT_MUTATIONS == PLAN_LIMIT
