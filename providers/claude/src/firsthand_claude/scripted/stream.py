"""The Messages API's answer as an event stream, and as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

ERROR_TYPES: Final[dict[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}

NOTHING_SPENT: Final[dict[str, int]] = {
    "input_tokens": 0,
    "output_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}
"""No model ran, so nothing was spent; the evidence shows it so."""


def whole_message(number: int, model: str, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """The answer as one object.

    Args:
        number: of the request, for an identifier that says that it is scripted.
        model: as asked for.
        blocks: `text` and `tool_use` content blocks.
    """
    uses_tools = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": f"msg_scripted_{number:04d}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": "tool_use" if uses_tools else "end_turn",
        "stop_sequence": None,
        "usage": NOTHING_SPENT,
    }


def events(message: Mapping[str, Any]) -> list[bytes]:
    """The same answer as encoded server-sent events, in order."""
    opening = {**message, "content": [], "stop_reason": None}
    out = [_event("message_start", {"message": opening})]
    for index, block in enumerate(message["content"]):
        empty: dict[str, Any]
        if block["type"] == "text":
            empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        out.append(_event("content_block_start", {"index": index, "content_block": empty}))
        out.append(_event("content_block_delta", {"index": index, "delta": delta}))
        out.append(_event("content_block_stop", {"index": index}))
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    out.append(_event("message_delta", {"delta": ending, "usage": NOTHING_SPENT}))
    out.append(_event("message_stop", {}))
    return out


def error_body(status: int, text: str) -> bytes:
    """An error as the real endpoint words it."""
    error = {"type": ERROR_TYPES.get(status, "api_error"), "message": f"scripted: {text}"}
    return json.dumps({"type": "error", "error": error, "request_id": "req_scripted"}).encode()


def _event(kind: str, fields: Mapping[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
