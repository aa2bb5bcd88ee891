from __future__ import annotations

from typing import Any

import pytest

from firsthand.review.answer import AnswerError, output_schema, parse_answer

FINDING: dict[str, Any] = {"severity": "low", "path": "value.py", "line": 3, "message": "No."}
GOOD: dict[str, Any] = {"verdict": "rejected", "summary": "Off.", "findings": [FINDING, {**FINDING, "line": None}]}


def test_an_answer_of_the_schema_is_a_judgement() -> None:
    judgement = parse_answer(GOOD)
    assert judgement.as_json() == GOOD


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in GOOD.items() if key != name}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "answer"),
        ("approved", "answer"),
        ([GOOD], "answer"),
        ({}, "verdict"),
        (without("summary"), "summary"),
        (without("findings"), "findings"),
        ({**GOOD, "verdict": "Approved"}, "verdict"),
        ({**GOOD, "verification": {"passed": True}}, "verification"),
        ({**GOOD, "summary": 1}, "summary"),
        ({**GOOD, "findings": [{**FINDING, "line": 0}]}, "line"),
        ({**GOOD, "findings": [{**FINDING, "line": -1}]}, "line"),
        ({**GOOD, "findings": [{**FINDING, "line": "3"}]}, "line"),
        ({**GOOD, "findings": [{**FINDING, "line": 3.5}]}, "floating-point"),
        ({**GOOD, "findings": [{**FINDING, "severity": "nit"}]}, "severity"),
        ({**GOOD, "findings": [{**FINDING, "extra": ""}]}, "extra"),
        ({**GOOD, "summary": "\ud800"}, "surrogate"),
        ({**GOOD, "summary": "x" * 1024 * 1024}, "bytes"),
        ({**GOOD, "summary": float("nan")}, "floating-point"),
        ({**GOOD, "summary": b"bytes"}, "JSON"),
    ],
)
def test_anything_else_is_none(value: object, message: str) -> None:
    with pytest.raises(AnswerError, match=message):
        parse_answer(value)


def test_the_schema_asks_for_exactly_what_is_accepted() -> None:
    schema = output_schema()
    assert schema["required"] == ["verdict", "summary", "findings"]
    assert schema["additionalProperties"] is False
