from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.mutation import LIMIT_MUTATIONS, PlanError, parse_plan

ENTRY = {"check": "c", "path": "value.py", "old": "a", "new": "b"}


def without(field: str) -> dict[str, str]:
    return {name: text for name, text in ENTRY.items() if name != field}


def test_a_plan_keeps_its_order_and_its_exact_texts() -> None:
    second = {**ENTRY, "old": "x\r\n\u2028\ufeff", "new": ""}
    first, other = parse_plan(json.dumps([ENTRY, second]).encode())
    assert (first.old, other.old, other.new) == ("a", "x\r\n\u2028\ufeff", "")


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({}, "plan"),
        (None, "plan"),
        ("x", "plan"),
        ([], "plan"),
        ([ENTRY] * (LIMIT_MUTATIONS + 1), "plan"),
        ([ENTRY, 3], "plan[1]"),
        ([[ENTRY]], "plan[0]"),
        ([{**ENTRY, "expected": "detected"}], "plan[0]"),
        *(([without(field)], f"plan[0].{field}") for field in ENTRY),
        *(([{**ENTRY, field: 3}], f"plan[0].{field}") for field in ENTRY),
        ([{**ENTRY, "old": None}], "plan[0].old"),
    ],
)
def test_another_shape_is_refused_with_its_place(value: Any, where: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse_plan(json.dumps(value).encode())
    assert (caught.value.code, caught.value.exit_status, caught.value.where) == ("plan_invalid", 2, where)
    assert caught.value.next_step


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"garbage",
        b"[",
        b"[]]",
        b"\xff\xfe",
        b"\xef\xbb\xbf[]",
        b"[1.5]",
        b'[{"check": "c", "check": "d"}]',
        b'[{"check": "\\ud800"}]',
        b"[" * 100_000,
        b"[" + b" " * (16 * 1024 * 1024) + b"]",
    ],
)
def test_what_is_no_strict_json_is_refused(raw: bytes) -> None:
    with pytest.raises(PlanError, match="strict JSON"):
        parse_plan(raw)


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_no_bytes_do_anything_but_give_a_plan_or_be_refused(raw: bytes) -> None:
    try:
        assert parse_plan(raw)
    except PlanError:
        return
