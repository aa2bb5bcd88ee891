"""A dispatch that does not agree with itself or with the records; every forgery here is resealed."""

from __future__ import annotations

from typing import Any

import pytest

from evidence.builder import (
    canonical,
    digest,
    forged,
)
from evidence.judging import Change, found, put
from evidence.reviews import review_evidence
from firsthand.evidence import verify


class TestDispatch:
    @pytest.mark.parametrize(
        ("change", "where"),
        [
            (lambda d: d["toolCalls"].pop(0), "dispatch.toolCalls[0].call"),
            (lambda d: d["toolCalls"].reverse(), "dispatch.toolCalls[0].call"),
            (lambda d: d["toolCalls"].append(d["toolCalls"][0]), "dispatch.toolCalls[6].call"),
            (put("toolCalls", 0, "code", to="usage"), "dispatch.toolCalls[0].code"),
            (put("toolCalls", 3, "code", to=""), "dispatch.toolCalls[3].code"),
            (lambda d: d["toolCalls"][3].update(result="ok", code=""), "dispatch.toolCalls[3].tool"),
            (put("toolCalls", 0, "runs", to=[1]), "dispatch.toolCalls[0].runs"),
            (put("toolCalls", 0, "mutation", to=0), "dispatch.toolCalls[0].mutation"),
            (put("toolCalls", 0, "argumentsSha256", to="0" * 64), "dispatch.toolCalls[0].argumentsSha256"),
            (put("toolCalls", 0, "arguments", to='{"path":"other"}'), "dispatch.toolCalls[0].argumentsSha256"),
            (put("toolCalls", 0, "arguments", to="x" * 2001), "dispatch.toolCalls[0].arguments"),
            (put("toolCalls", 1, "runs", to=[2]), "dispatch.toolCalls[2].runs"),
            (put("toolCalls", 1, "runs", to=[7]), "dispatch.toolCalls[1].runs"),
            (put("toolCalls", 1, "runs", to=[0]), "dispatch.toolCalls[1].runs"),
            (put("toolCalls", 2, "runs", to=[2, 3, 4, 5]), "dispatch.toolCalls[2].runs"),
            (put("toolCalls", 2, "mutation", to=1), "dispatch.toolCalls[2].mutation"),
            (put("coverage", 0, "path", to="absent"), "dispatch.coverage[0].path"),
            (put("coverage", 1, "path", to="src/value.py"), "dispatch.coverage[1].path"),
            (put("coverage", 0, "totalBytes", to=1), "dispatch.coverage[0]"),
            (put("coverage", 1, "deliveredBytes", to=99), "dispatch.coverage[1]"),
            (put("coverage", 1, "whole", to=True), "dispatch.coverage[1].whole"),
            (put("coverage", 1, "path", to="tests/test_value.py"), "dispatch.coverage[1]"),
            (put("toolCalls", 0, "tool", to="list_files"), "dispatch.coverage[0]"),
            (put("toolCalls", 1, "runs", to=[]), "runs[0]"),
            (put("toolCalls", 2, "mutation", to=None), "mutations[0]"),
            (put("unread", to=[]), "dispatch.unread"),
            (put("unread", to=["REQUIREMENTS.md", "tests/test_value.py"]), "dispatch.unread"),
        ],
    )
    def test_what_does_not_agree(self, change: Change, where: str) -> None:
        found(forged(review_evidence(), lambda body: change(body["dispatch"])), where)

    def test_what_the_call_asked_for(self) -> None:
        def other(index: int, arguments: dict[str, str]) -> Change:
            def change(body: Any) -> None:
                text = canonical(arguments).decode()
                body["dispatch"]["toolCalls"][index].update(arguments=text, argumentsSha256=digest(text.encode()))

            return change

        found(forged(review_evidence(), other(1, {"checkId": "other"})), "dispatch.toolCalls[1].runs")
        asked = {"checkId": "value", "path": "src/value.py", "old": "a + b", "new": "easier"}
        found(forged(review_evidence(), other(2, asked)), "dispatch.toolCalls[2].mutation")

    def test_a_check_does_not_run_mutated_files(self) -> None:
        def change(body: Any) -> None:
            body["dispatch"]["toolCalls"][1]["runs"] = [5]

        found(forged(review_evidence(), change), "dispatch.toolCalls[1].runs", "which run_check does not make")

    def test_one_mutation_for_two_calls(self) -> None:
        def change(body: Any) -> None:
            calls = body["dispatch"]["toolCalls"]
            calls[3] = calls[2] | {"call": 4, "runs": []}

        found(forged(review_evidence(), change), "dispatch.toolCalls[3].mutation", "belongs to call 3 already")

    def test_the_33rd_call_is_refused(self) -> None:
        def calls(last: str) -> Change:
            def change(body: Any) -> None:
                first = body["dispatch"]["toolCalls"][0]
                more = body["dispatch"]["toolCalls"]
                more += [first | {"call": number} for number in range(7, 34)]
                more[-1].update(result=last, code="" if last == "ok" else "usage")

            return change

        assert verify(forged(review_evidence(), calls("refused"))).valid
        found(forged(review_evidence(), calls("ok")), "dispatch.toolCalls[32].result")
