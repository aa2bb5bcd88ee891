"""Arguments that are taken from what earlier calls returned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from firsthand_claude.scripted.exchange import result_text, tool_results

REFERENCE: Final = "$from"
_LIMIT_DEPTH: Final = 32


class UnresolvedError(Exception):
    """A reference leads nowhere; the message says which and why."""


def call_id(number: int) -> str:
    """The identifier of the n-th tool call of a session, from 1."""
    return f"toolu_scripted_{number:04d}"


def resolve(value: Any, message: Mapping[str, Any], depth: int = 0) -> Any:  # noqa: ANN401 - any JSON value
    """Replace each `{"$from": POINTER}` in a JSON value.

    The pointer's first step is the number of a call, from 1 over the whole session; the rest is a JSON Pointer into the
    JSON that the call returned. With no further step it is the returned text itself.

    Args:
        value: the scenario's arguments.
        message: the request's body, which carries all results so far.
        depth: of this value in the whole.

    Raises:
        UnresolvedError: no such call, result or place; or nested beyond 32 levels.
    """
    if depth > _LIMIT_DEPTH:
        raise UnresolvedError(f"nested beyond {_LIMIT_DEPTH} levels")
    if isinstance(value, list):
        return [resolve(entry, message, depth + 1) for entry in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {REFERENCE}:
        return _follow(value[REFERENCE], message)
    return {key: resolve(entry, message, depth + 1) for key, entry in value.items()}


def _follow(pointer: object, message: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    if not isinstance(pointer, str) or not pointer.startswith("/"):
        raise UnresolvedError(f"not a pointer: {pointer!r}")
    number, *steps = pointer[1:].split("/")
    if not (number.isascii() and number.isdecimal()):
        raise UnresolvedError(f"{pointer}: the first step is the number of a call")
    found = [block for block in tool_results(message) if block.get("tool_use_id") == call_id(int(number))]
    if not found:
        raise UnresolvedError(f"{pointer}: call {number} has no result yet")
    text = result_text(found[-1])
    if not steps:
        return text
    try:
        node: Any = json.loads(text)
        for step in steps:
            key = step.replace("~1", "/").replace("~0", "~")
            node = node[int(key)] if isinstance(node, list) else node[key]
    except (ValueError, LookupError, TypeError) as error:
        raise UnresolvedError(f"{pointer}: not in what call {number} returned") from error
    return node
