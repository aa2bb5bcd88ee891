"""What a model was shown, read from the request itself: the only authority. The CLI's own list differs from it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from firsthand.review.interface import PreflightRequest, ReviewError, ToolSchema
from firsthand.review.tools import schemas_digest
from firsthand_claude.flags import ANSWER_TOOL, TOOL_PREFIX
from firsthand_claude.scripted import Exchange

LIMIT_FOREIGN_BYTES: Final = 4096
"""Of text that neither we nor the user wrote: without `--bare` the CLI adds about 1 kB of environment and date."""


def check_wire(exchanges: list[Exchange], request: PreflightRequest, prompt: str) -> tuple[tuple[str, ...], str]:
    """Compare what was sent with what must be sent.

    1. One request for a message, and no other request of any kind. 2. Exactly the expected tools. 3. Each with the
    description and the schema that the host declares. 4. Our system prompt and our prompt as they are, and at most
    4 KiB of anything else. 5. The effort that was asked for.

    Args:
        exchanges: all that the endpoint got.
        request: of the preflight.
        prompt: the synthetic prompt.

    Returns:
        the tools' names, sorted, and the digest of their schemas.

    Raises:
        ReviewError: `tool_preflight_missing`, with what was seen.
    """
    if len(exchanges) != 1 or exchanges[0].path.split("?")[0] != "/v1/messages":
        asked = ", ".join(f"{exchange.method} {exchange.path}"[:80] for exchange in exchanges[:5]) or "none"
        raise _refusal(f"exactly one request to the model was expected, seen: {asked}")
    message = exchanges[0].message()
    declared = {} if request.endpoint is None else {tool.name: tool for tool in request.endpoint.tools}
    names = tuple(sorted(exchanges[0].tool_names()))
    expected = tuple(sorted((ANSWER_TOOL, *(f"{TOOL_PREFIX}{name}" for name in declared))))
    if names != expected:
        raise _refusal(f"the model was shown {', '.join(names) or 'no tool'}; expected {', '.join(expected)}")
    digest = _schemas_digest(exchanges[0])
    if digest != schemas_digest(declared.values(), request.output_schema):
        raise _refusal("a tool's description or schema on the wire is not what the host declares")
    _check_texts(message, request.system_prompt, prompt)
    effort = message.get("output_config")
    if request.effort and (not isinstance(effort, dict) or effort.get("effort") != request.effort):
        raise _refusal(f"the effort {request.effort!r} did not reach the model")
    return names, digest


def _schemas_digest(exchange: Exchange) -> str:
    answer: Mapping[str, Any] = {}
    tools = []
    for tool in exchange.tools():
        schema = tool.get("input_schema")
        if not isinstance(schema, dict):
            raise _refusal(f"the tool {tool.get('name')} has no schema on the wire")
        if tool["name"] == ANSWER_TOOL:
            answer = schema
        else:
            name, description = str(tool["name"]).removeprefix(TOOL_PREFIX), str(tool.get("description"))
            tools.append(ToolSchema(name, description, schema))
    try:
        return schemas_digest(tools, answer)
    except ValueError as error:
        raise _refusal(f"a schema on the wire is no plain JSON: {error}") from error


def _check_texts(message: Mapping[str, Any], system_prompt: str, prompt: str) -> None:
    texts = list(_texts(message))
    for ours in (system_prompt, prompt):
        if texts.count(ours) != 1:
            raise _refusal("a prompt did not reach the model as it was given, exactly once")
        texts.remove(ours)
    foreign = sum(len(text.encode("utf-8", "replace")) for text in texts)
    if foreign > LIMIT_FOREIGN_BYTES:
        raise _refusal(f"the model was shown {foreign} bytes of text that is not ours, at most {LIMIT_FOREIGN_BYTES}")


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    messages = message.get("messages")
    contents = [entry.get("content") for entry in messages if isinstance(entry, dict)] if messages else []
    for content in (message.get("system"), *contents):
        if isinstance(content, str):
            yield content
        elif isinstance(content, list):
            for block in content:
                text = block.get("text") if isinstance(block, dict) else None
                # What is no plain text counts with all that it holds.
                yield text if isinstance(text, str) else json.dumps(block)


def _refusal(message: str) -> ReviewError:
    return ReviewError(
        f"the preflight failed: {message}",
        next_step="use a Claude CLI of a version that docs/providers.md names as measured",
        code="tool_preflight_missing",
    )
