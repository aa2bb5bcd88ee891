"""One request to the scripted model as it arrived, and what it was answered with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request.

    Attributes:
        at_s: `time.monotonic()` at its arrival.
        method, path: with the query.
        headers: names in lower case.
        body: exact bytes; at most the endpoint's limit.
        status: HTTP status of the answer.
        turn: index of the scenario's turn that answered; -1 for an answer from no turn.
    """

    at_s: float
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    status: int
    turn: int

    def message(self) -> dict[str, Any]:
        """The body as JSON; empty when it is none."""
        try:
            value = json.loads(self.body)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    def tools(self) -> list[dict[str, Any]]:
        """What the model can see: the request's `tools`, the only authority on it."""
        tools = self.message().get("tools", [])
        return [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []

    def tool_names(self) -> list[str]:
        """Their names, in the order of the request."""
        return [str(tool.get("name")) for tool in self.tools()]

    def results(self) -> list[dict[str, Any]]:
        """Every tool result in the request's messages, in order."""
        return list(tool_results(self.message()))


def tool_results(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The `tool_result` blocks of a request's body, in order."""
    messages = message.get("messages")
    for entry in messages if isinstance(messages, list) else ():
        content = entry.get("content") if isinstance(entry, dict) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_result":
                yield block


def result_text(block: Mapping[str, Any]) -> str:
    """The text of one tool result."""
    content = block.get("content", "")
    if isinstance(content, str):
        return content
    parts = [part.get("text", "") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return "".join(part for part in parts if isinstance(part, str))
