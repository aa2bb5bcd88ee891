"""Driving a review in tests: a scenario in, a record and the model's requests out."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firsthand.records import Budget
from firsthand.residues import Session
from firsthand.review.answer import output_schema
from firsthand.review.interface import (
    AuthLeg,
    Diagnosis,
    Dispatch,
    Endpoint,
    Host,
    PluginIdentity,
    PreflightRequest,
    ReviewKind,
    ReviewRecord,
)
from firsthand.review.launching import PlainLauncher
from firsthand.review.tools import tool_schemas
from firsthand_claude.flags import Asked, compact, flag_set_digest
from firsthand_claude.provider import ClaudeProvider
from firsthand_claude.scripted import Exchange, Scenario, ScriptedEndpoint, parse_scenario

STUB = Path(__file__).with_name("stub_server.py")
PLUGIN = PluginIdentity(name="claude", distribution="firsthand-claude", version="0.1.0")
SYSTEM_PROMPT = "You review a change. This is a constant of the tests."
MODEL = "scripted-reviewer"
ANSWER = {"verdict": "approved", "summary": "fine", "findings": []}
BUDGET_S = 60.0


def scenario(*turns: Mapping[str, Any]) -> Scenario:
    """A scenario of these turns, through the reader that reads scenario files."""
    return parse_scenario(json.dumps({"name": "test", "turns": list(turns)}).encode())


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """A turn with one tool call."""
    return {"calls": [{"tool": tool, "arguments": arguments}]}


@dataclass
class Reviewed:
    """One review and what was asked of the model."""

    record: ReviewRecord
    exchanges: list[Exchange]
    private: Path

    @property
    def failure(self) -> str:
        """The kind of failure, or empty."""
        return self.record.failure.kind if self.record.failure is not None else ""

    @property
    def detail(self) -> str:
        """Its detail, or empty."""
        return self.record.failure.detail if self.record.failure is not None else ""

    def wire(self) -> bytes:
        """All bytes that were sent to the model."""
        return b"".join(exchange.body for exchange in self.exchanges)


@dataclass
class Driver:
    """Reviews with one provider and one program."""

    provider: ClaudeProvider
    session: Session
    folder: Path
    program: Path
    budget: Budget = field(default_factory=lambda: Budget(timeout_ms=60_000, max_turns=60))

    def host(self, environment: Mapping[str, str] | None = None) -> Host:
        """A host with an empty home."""
        home = self.folder / "user-home"
        home.mkdir(exist_ok=True)
        return Host(environment=environment or {}, home=home, program=self.program)

    @property
    def starts(self) -> list[dict[str, str]]:
        """The environment of each start of the stub server."""
        log = self.folder / "starts.log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def server(self, mode: str = "answer") -> Endpoint:
        """The stub server."""
        tools = [
            {"name": tool.name, "description": tool.description, "inputSchema": dict(tool.input_schema)}
            for tool in tool_schemas()
        ]
        argv = (sys.executable, "-I", "-S", str(STUB), mode, str(self.folder / "starts.log"), json.dumps(tools))
        return Endpoint(argv=argv, environment={"RELAY": "1"}, reads=(STUB,), tools=tool_schemas())

    def request(self, endpoint: Endpoint | None, *, model: str = MODEL, effort: str = "high") -> PreflightRequest:
        """What a preflight is asked."""
        return PreflightRequest(
            plugin=PLUGIN,
            kind="tools" if endpoint else "tool-less",
            model=model,
            effort=effort,
            budget=self.budget,
            system_prompt=SYSTEM_PROMPT,
            output_schema=output_schema(),
            endpoint=endpoint,
            private=self.session.tree("preflight"),
            host=self.host(),
        )

    def preflight(self, endpoint: Endpoint | None, *, effort: str = "high", model: str = MODEL) -> Diagnosis:
        """A real preflight."""
        request = self.request(endpoint, effort=effort, model=model)
        return self.provider.preflight(request, self.launcher(request.private))

    def launcher(self, private: Path, seconds: float = BUDGET_S) -> PlainLauncher:
        """The host's plain launcher."""
        return PlainLauncher(self.session, private, time.monotonic() + seconds)

    def diagnosis(self, endpoint: Endpoint | None) -> Diagnosis:
        """What a preflight would have said, without running one; the preflight has its own tests."""
        capability = self.provider.capability(self.host())
        kind: ReviewKind = "tools" if endpoint else "tool-less"
        tools = tuple(tool.name for tool in endpoint.tools) if endpoint else ()
        asked = Asked(MODEL, "high", SYSTEM_PROMPT, compact(output_schema()), tools, self.budget.max_turns)
        return Diagnosis(
            schema_version=1,
            kind=kind,
            provider=PLUGIN,
            program=capability.program,  # type: ignore[union-attr]
            model=MODEL,
            effort="high",
            flag_set_digest=flag_set_digest(asked, retries=self.provider._settings.retries),
            tool_schemas_digest="0" * 64,
            tools=tools,
            budget=self.budget,
        )

    def dispatch(
        self, diagnosis: Diagnosis, host: Host, auth: AuthLeg | None = None, *, prompt: str = "Review this."
    ) -> Dispatch:
        """One dispatch."""
        return Dispatch(
            diagnosis=diagnosis,
            system_prompt=SYSTEM_PROMPT,
            prompt=(prompt,),
            output_schema=output_schema(),
            nonce="1" * 64,
            auth=auth,
            private=self.session.tree("review"),
            host=host,
            remaining_s=BUDGET_S,
        )

    def review(self, played: Scenario, server: str | None = "answer", seconds: float = BUDGET_S) -> Reviewed:
        """A whole review; `server` is a mode of the stub server, or None for a tool-less review."""
        endpoint = self.server(server) if server is not None else None
        with ScriptedEndpoint(played) as model:
            dispatch = self.dispatch(self.diagnosis(endpoint), self.host({"ANTHROPIC_BASE_URL": model.url}))
            record = self.provider.review(dispatch, endpoint, self.launcher(dispatch.private, seconds))
            return Reviewed(record, list(model.exchanges), dispatch.private)


@contextmanager
def playing(*turns: Mapping[str, Any]) -> Iterator[ScriptedEndpoint]:
    """An open endpoint with these turns."""
    with ScriptedEndpoint(scenario(*turns)) as model:
        yield model
