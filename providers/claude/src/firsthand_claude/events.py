"""The CLI's event stream, line by line: what was seen, and the first sign that makes going on useless.

Memory: the final result and a few numbers; no other event is kept.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from firsthand.review.interface import SERVER_NAME, Failure, FailureKind
from firsthand_claude.flags import ANSWER_TOOL, PERMISSION_MODE, TOOL_PREFIX


@dataclass(frozen=True, slots=True)
class Expected:
    """What the CLI must say of itself in its first event.

    Attributes:
        tools: plain names of the host's tools; empty for a tool-less review.
        version: of the program that was digested.
    """

    tools: tuple[str, ...]
    version: str

    @property
    def named(self) -> frozenset[str]:
        """All tools by the CLI's names, the answer's among them."""
        return frozenset({ANSWER_TOOL, *(f"{TOOL_PREFIX}{tool}" for tool in self.tools)})


@dataclass(slots=True)
class Stream:
    """What was seen so far.

    Attributes:
        expected: what the first event must say.
        session_id: empty before the first event.
        results: how many final results.
        result_line, result: the last of them, exact and parsed.
        foreign: tools that the model asked for and that it was not given, in order, at most 16.
        failure: why the session must end now; it is not overridden by anything later.
    """

    expected: Expected
    session_id: str = ""
    results: int = 0
    result_line: bytes = b""
    result: dict[str, Any] = field(default_factory=dict)
    foreign: list[str] = field(default_factory=list)
    failure: Failure | None = None
    started: bool = False
    _asked_answers: set[str] = field(default_factory=set)
    _given_answers: int = 0

    @property
    def answers(self) -> int:
        """How many structured answers the CLI took from the model."""
        return self._given_answers

    def take(self, line: bytes) -> bool:
        """Look at one line; whether the session may go on."""
        if self.failure is None and line.strip():
            self._look(line)
        return self.failure is None

    def _look(self, line: bytes) -> None:
        event = parse_object(line)
        kind = event.get("type") if event is not None else None
        if event is None or not isinstance(kind, str):
            return self._fail("stream-broken", f"a line is no event: {line[:80]!r}")
        if self.results:
            # Nothing after the final result counts, except a second one.
            if kind == "result":
                self.results += 1
            return None
        if kind == "system" and event.get("subtype") == "init":
            return self._begin(event)
        if kind == "result":
            self.results, self.result_line, self.result = 1, line, event
            return None
        if kind in ("assistant", "user") and not self.started:
            return self._fail("stream-broken", "the model was asked before the CLI said what it had set up")
        for block in _blocks(event):
            self._weigh(block)
        return None

    def _begin(self, event: Mapping[str, Any]) -> None:
        self.started = True
        self.session_id = str(event.get("session_id", ""))[:200]
        self.failure = next(setup_failures(event, self.expected), None)

    def _weigh(self, block: Mapping[str, Any]) -> None:
        if block.get("type") == "tool_use":
            name = str(block.get("name"))
            if name == ANSWER_TOOL:
                self._asked_answers.add(str(block.get("id")))
            elif name not in self.expected.named and len(self.foreign) < 16:
                self.foreign.append(name[:100])
        elif block.get("type") == "tool_result" and block.get("is_error") is not True:
            self._given_answers += str(block.get("tool_use_id")) in self._asked_answers

    def _fail(self, kind: FailureKind, detail: str) -> None:
        self.failure = Failure(kind, detail)


def setup_failures(event: Mapping[str, Any], expected: Expected) -> Iterator[Failure]:
    """Everything wrong with the set-up that the CLI reports in its first event; nothing when it is as it must be."""
    servers = event.get("mcp_servers")
    wanted = [(SERVER_NAME, "connected")] if expected.tools else []
    found = (
        [(server.get("name"), server.get("status")) for server in servers if isinstance(server, dict)]
        if isinstance(servers, list)
        else []
    )
    names = _names(event.get("tools"))
    if missing := sorted(expected.named - names):
        yield Failure("tools-missing", f"the CLI did not get {', '.join(missing)}; servers: {_shown(found)}")
    if extra := sorted(names - expected.named):
        yield Failure("tools-extra", f"the CLI shows the model {', '.join(extra)[:200]} as well")
    if found != wanted:
        kind: FailureKind = "tools-extra" if len(found) > len(wanted) else "tools-missing"
        yield Failure(kind, f"tool servers are {_shown(found)}, expected {_shown(wanted)}")
    if event.get("claude_code_version") != expected.version:
        yield Failure("setup-differs", f"it calls itself {event.get('claude_code_version')}, not {expected.version}")
    if event.get("permissionMode") != PERMISSION_MODE:
        yield Failure("setup-differs", f"its permission mode is {event.get('permissionMode')}")
    if skills := _names(event.get("skills")) | _names(event.get("slash_commands")):
        yield Failure("tools-extra", f"it has skills or commands: {', '.join(sorted(skills))[:200]}")


def parse_object(line: bytes) -> dict[str, Any] | None:
    """One JSON object, or None. Floats and large numbers are the program's own business here."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _blocks(event: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    message = event.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield block


def _names(value: object) -> frozenset[str]:
    return frozenset(str(name) for name in value) if isinstance(value, list) else frozenset()


def _shown(servers: Collection[tuple[object, object]]) -> str:
    return ", ".join(f"{name} {status}" for name, status in servers)[:200] or "none"
