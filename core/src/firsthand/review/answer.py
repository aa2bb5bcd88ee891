"""The reviewer's answer: the schema that the model is asked for, and the check of what came back.

The answer is text of a model. It can reject or block; an approval counts only by what the host measured. There is no
field for verification, so nothing that a model writes can stand where the host's records stand.
"""

from __future__ import annotations

from typing import Final, cast

from pydantic import ValidationError

from firsthand.canonical import JSONValue, StrictJSONError, canonical_bytes
from firsthand.records import Judgement

LIMIT_ANSWER_BYTES: Final = 1024 * 1024
"""Largest answer that is looked at, as canonical JSON."""


class AnswerError(ValueError):
    """The answer is not what was asked for; the message says where."""


def output_schema() -> dict[str, JSONValue]:
    """The JSON Schema that the model's answer must have; the same for every review."""
    severities: list[JSONValue] = ["critical", "high", "medium", "low", "info"]
    finding: JSONValue = {
        "type": "object",
        "properties": {
            "severity": {"type": "string", "enum": severities},
            "path": {"type": "string", "description": "The registered path concerned; empty where there is none."},
            "line": {"type": ["integer", "null"], "minimum": 1, "description": "Line number, from 1, or null."},
            "message": {"type": "string", "description": "What is wrong and why it matters."},
        },
        "required": ["severity", "path", "line", "message"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "verdict": {"type": "string", "enum": ["approved", "rejected", "blocked"]},
            "summary": {"type": "string", "description": "The judgement in a few sentences."},
            "findings": {"type": "array", "items": finding},
        },
        "required": ["verdict", "summary", "findings"],
        "additionalProperties": False,
    }


def parse_answer(value: object) -> Judgement:
    """Check an answer against what was asked for, whatever the reviewer's program says of it.

    Args:
        value: the structured answer as plain JSON values; prose is never looked at.

    Raises:
        AnswerError: it is not of that shape, or larger than 1 MiB.
    """
    try:
        raw = canonical_bytes(cast("JSONValue", value))
    except (StrictJSONError, TypeError, ValueError) as error:
        raise AnswerError(f"not plain JSON: {error}") from error
    if len(raw) > LIMIT_ANSWER_BYTES:
        raise AnswerError(f"{len(raw)} bytes, at most {LIMIT_ANSWER_BYTES} are accepted")
    try:
        judgement = Judgement.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the answer"
        raise AnswerError(f"{where}: {first['msg']}") from error
    for index, finding in enumerate(judgement.findings):
        if finding.line == 0:
            raise AnswerError(f"findings.{index}.line: lines are counted from 1")
    return judgement
