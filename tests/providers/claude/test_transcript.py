"""Tool uses in a transcript: each once, in order, and nothing that is no transcript passes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_claude.events import Expected, Stream
from firsthand_claude.transcript import tool_uses


def assistant(*uses: tuple[str, str, Any]) -> bytes:
    content = [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in uses]
    message = {"content": [{"type": "text", "text": "x"}, *content]}
    return json.dumps({"type": "assistant", "message": message}).encode()


def test_names_lose_the_prefix_and_the_answer_is_left_out() -> None:
    record = assistant(
        ("1", "mcp__cm_review__read_file", {"path": "a"}),
        ("2", "Bash", {}),
        ("3", "StructuredOutput", {}),
        ("4", "mcp__other__read_file", {}),
    )
    assert [use.tool for use in tool_uses([record, b""])] == ["read_file", "Bash", "mcp__other__read_file"]


def test_a_use_that_stands_there_twice_counts_once() -> None:
    record = assistant(("1", "Bash", {"a": 1}))
    assert len(tool_uses([record, record])) == 1
    with pytest.raises(ValueError, match="in another way"):
        tool_uses([record, assistant(("1", "Bash", {"a": 2}))])


@pytest.mark.parametrize(
    "record",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"type": 1}',
        b'{"type": "assistant"}',
        b'{"type": "assistant", "message": {"content": [1]}}',
        b'{"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "x"}]}}',
        b'{"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "x", "name": 5}]}}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_record_is_refused(record: bytes) -> None:
    with pytest.raises(ValueError, match="record 1"):
        tool_uses([record])


def test_other_records_and_a_message_of_plain_text_are_none_of_ours() -> None:
    records = [b'{"type": "user", "message": 5}', b'{"type": "assistant", "message": {"content": "text"}}']
    assert tool_uses(records) == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["type", "subtype", "message", "content", "id", "name", "tools", "is_error", "mcp_servers"])
EVENTS = st.dictionaries(KEYS, JSON | st.sampled_from(["assistant", "user", "system", "init", "result"]), max_size=6)


@given(st.lists(EVENTS.map(lambda event: json.dumps(event).encode()) | st.binary(max_size=40), max_size=6))
def test_no_line_is_more_than_a_failure(lines: list[bytes]) -> None:
    stream = Stream(Expected(("read_file",), "2.1.332"))
    for line in lines:
        going_on = stream.take(line)
        assert going_on == (stream.failure is None)
    assert not stream.started or stream.failure is not None
