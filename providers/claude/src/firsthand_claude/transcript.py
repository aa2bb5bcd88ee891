"""The tool uses that stand in the CLI's own transcript."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from firsthand.review.interface import ToolUse
from firsthand_claude.events import parse_object
from firsthand_claude.flags import ANSWER_TOOL, TOOL_PREFIX


def tool_uses(records: Iterable[bytes]) -> tuple[ToolUse, ...]:
    """Every tool use of the model, in order, once each; the structured answer is left out.

    Args:
        records: lines of the transcript without line ends; an empty one is skipped.

    Raises:
        ValueError: a record is no JSON object with a type, or a tool use is malformed or stands there twice and
            differs.
    """
    seen: dict[str, ToolUse] = {}
    for number, record in enumerate(records, 1):
        if not record.strip():
            continue
        event = parse_object(record)
        if event is None or not isinstance(event.get("type"), str):
            raise ValueError(f"record {number} of the transcript is no event")
        if event["type"] != "assistant":
            continue
        for block in _tool_blocks(event, number):
            name, identifier = block.get("name"), block.get("id")
            if not isinstance(name, str) or not isinstance(identifier, str):
                raise ValueError(f"record {number} of the transcript holds a tool use without name or id")  # noqa: TRY004
            use = ToolUse(name.removeprefix(TOOL_PREFIX), block.get("input"))
            if seen.setdefault(identifier, use) != use:
                raise ValueError(f"record {number} of the transcript tells of a tool use in another way")
    return tuple(use for use in seen.values() if use.tool != ANSWER_TOOL)


def _tool_blocks(event: Mapping[str, Any], number: int) -> list[Mapping[str, Any]]:
    message = event.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return []
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise ValueError(f"record {number} of the transcript is a message without content")
    return [block for block in content if block.get("type") == "tool_use"]
