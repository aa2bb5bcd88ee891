"""What a scripted model says and does, turn by turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

STRUCTURED_OUTPUT = "StructuredOutput"
"""The tool by which the CLI asks for the answer; its input schema is the answer's."""

FaultKind: TypeAlias = Literal["status", "drop", "half-event", "silence", "garbage"]
"""How a turn goes wrong:

- `status`: an HTTP error, with the body that the real endpoint gives.
- `drop`: the connection ends in the middle of the event stream, between two events.
- `half-event`: the connection ends in the middle of one event.
- `silence`: the request is accepted and nothing is sent.
- `garbage`: HTTP 200 and bytes that are no event stream.
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to go wrong. `status` stands only with the kind of that name."""

    kind: FaultKind
    status: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call.

    Attributes:
        tool: as the request names it, or the end of exactly one of those names after `__`; anything else is sent as
            it is, so that a scenario can ask for a tool that does not exist.
        arguments: JSON; an object `{"$from": "/2/content"}` at any depth is replaced by what the second call returned.
    """

    tool: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class Turn:
    """The answer to one request.

    Attributes:
        text: said before the calls; empty for none.
        calls: made in this order; a turn without calls ends the model's turn.
        fault: instead of, or in the middle of, the answer.
        delay_ms: before the first byte.
        times: how many requests in a row this turn answers; 0 for all that follow.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    fault: Fault | None = None
    delay_ms: int = 0
    times: int = 1


@dataclass(frozen=True, slots=True)
class Scenario:
    """A whole session of the scripted model; requests beyond its last turn are answered with a plain last word."""

    name: str
    turns: tuple[Turn, ...]
