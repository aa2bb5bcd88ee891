"""The preflight with the fake program, and what is read back of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checks.yard import Yard
from firsthand.canonical import canonical_bytes
from firsthand.records import Budget
from firsthand.review.diagnosis import parse_diagnosis
from firsthand.review.interface import Host, ReviewError
from review.fake import FakeProvider
from review.rounds import diagnosed, open_hall

YardMaker = Callable[..., Yard]


def test_a_preflight_brings_what_the_server_really_shows(tmp_path: Path, yard: YardMaker) -> None:
    with open_hall(tmp_path, yard) as hall:
        assert hall.preflight(FakeProvider()) == diagnosed("tools")
    with open_hall(tmp_path / "other", None) as hall:
        assert hall.preflight(FakeProvider()) == diagnosed("tool-less")


def test_a_provider_that_is_absent_is_refused_with_its_reason(tmp_path: Path, yard: YardMaker) -> None:
    with open_hall(tmp_path, yard) as hall, pytest.raises(ReviewError) as caught:
        hall.preflight(FakeProvider(), host=Host(environment={"FAKE_ABSENT": "1"}, home=None))
    assert (caught.value.code, caught.value.next_step) == ("review_verification_provider", "put it back")


@pytest.mark.parametrize(
    "change",
    [
        {"model": "model-2"},
        {"effort": ""},
        {"budget": Budget(timeout_ms=1, max_turns=1)},
        {"tool_schemas_digest": "0" * 64},
        {"kind": "tool-less"},
    ],
)
def test_a_diagnosis_of_something_else_is_refused(tmp_path: Path, yard: YardMaker, change: dict[str, Any]) -> None:
    class Careless(FakeProvider):
        def preflight(self, request: Any, launcher: Any) -> Any:
            return super().preflight(request, launcher).model_copy(update=change)

    with open_hall(tmp_path, yard) as hall, pytest.raises(ReviewError) as caught:
        hall.preflight(Careless())
    assert caught.value.code == "tool_preflight_missing"


def raw(**changes: Any) -> bytes:
    value = json.loads(canonical_bytes(diagnosed("tools").as_json()))
    return json.dumps({**value, **changes}, indent=1).encode()


def test_what_was_written_is_read_back() -> None:
    assert parse_diagnosis(raw(), "review.json") == diagnosed("tools")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (raw(reviewVerification={"checks": []}), "reviewVerification"),
        (raw(extra=1), "extra"),
        (raw(schemaVersion=2), "schemaVersion"),
        (raw(kind="both"), "kind"),
        (raw(flagSetDigest="0"), "flagSetDigest"),
        (raw(budget={"timeoutMs": 1.5, "maxTurns": 1}), "floating-point"),
        (b'{"kind": "tools", "kind": "tools"}', "duplicate key"),
        (b"[]", "diagnosis"),
        (b"", "strict JSON"),
    ],
)
def test_what_is_no_diagnosis_is_refused_by_name(text: bytes, message: str) -> None:
    with pytest.raises(ReviewError, match=message) as caught:
        parse_diagnosis(text, "review.json")
    assert caught.value.code == "tool_preflight_missing"
    assert caught.value.where == "review.json"
