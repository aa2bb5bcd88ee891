"""The host's own log of what the reviewer asked for: every call gets a number as it arrives, and one record."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

from firsthand.canonical import JSONValue, StrictJSONError, canonical_bytes, sha256_hex
from firsthand.checks import Recorder
from firsthand.records import ToolCall, ToolResult
from firsthand.rules import LIMIT_TOOL_CALLS

LIMIT_ARGUMENTS: Final = 2_000
"""Characters of a call's arguments that its record keeps."""


def arguments_text(arguments: object) -> str:
    """One text for the same arguments, whoever saw them: canonical JSON, or sorted JSON for what has none."""
    try:
        return canonical_bytes(cast("JSONValue", arguments)).decode()
    except (StrictJSONError, TypeError, ValueError, RecursionError):
        return json.dumps(arguments, sort_keys=True, separators=(",", ":"), default=repr)


LIMIT_RECORDED: Final = 1_024
"""Calls that get a record; a reviewer that asks more often, refused all the while, is not reviewing."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """A call that has arrived.

    Attributes:
        call: its number, from 1.
        tool: as asked for.
        arguments: `arguments_text` of what was given.
        served: whether it is within the limit of calls.
        arrived: moment of the monotonic clock.
    """

    call: int
    tool: str
    arguments: str
    served: bool
    arrived: float


class CallLog:
    """Numbers calls and enters their records. Thread-safe.

    Args:
        recorder: gets each record when its call is answered.
        clock: monotonic, in seconds.
    """

    def __init__(self, recorder: Recorder, clock: Callable[[], float] = time.monotonic) -> None:
        self._recorder = recorder
        self._clock = clock
        self._lock = threading.Lock()
        self._arrived = 0
        self._records: dict[int, ToolCall] = {}

    def arrive(self, tool: object, arguments: object) -> Ticket:
        """A call arrives, whatever it holds."""
        name = tool if isinstance(tool, str) else arguments_text(tool)
        # A lone surrogate has no place in a record.
        name = name.encode("utf-8", "backslashreplace").decode()[:LIMIT_ARGUMENTS]
        text = arguments_text({} if arguments is None else arguments)
        with self._lock:
            self._arrived += 1
            return Ticket(self._arrived, name, text, self._arrived <= LIMIT_TOOL_CALLS, self._clock())

    def answer(
        self,
        ticket: Ticket,
        result: ToolResult,
        code: str,
        text: str,
        *,
        runs: tuple[int, ...] = (),
        mutation: int | None = None,
    ) -> ToolCall:
        """Enter what became of a call; once for each. Beyond 1,024 calls nothing is entered; see `arrived`."""
        returned = text.encode()
        record = ToolCall(
            call=ticket.call,
            tool=ticket.tool,
            arguments_sha256=sha256_hex(ticket.arguments.encode()),
            arguments=ticket.arguments[:LIMIT_ARGUMENTS],
            result=result,
            code=code,
            result_sha256=sha256_hex(returned),
            result_bytes=len(returned),
            runs=runs,
            mutation=mutation,
            duration_ms=max(0, round((self._clock() - ticket.arrived) * 1000)),
        )
        with self._lock:
            if ticket.call in self._records:
                raise ValueError(f"call {ticket.call} was answered already")
            if ticket.call > LIMIT_RECORDED:
                return record
            self._records[ticket.call] = record
        self._recorder.tool_call(record)
        return record

    @property
    def arrived(self) -> int:
        """How many calls there were, recorded or not."""
        with self._lock:
            return self._arrived

    @property
    def records(self) -> tuple[ToolCall, ...]:
        """Every answered call so far, in order of arrival."""
        with self._lock:
            return tuple(self._records[call] for call in sorted(self._records))
