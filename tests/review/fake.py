"""A provider that drives the fake program: the whole contract, and no model."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firsthand.canonical import canonical_digest
from firsthand.records import Usage
from firsthand.review.interface import (
    AuthLeg,
    Capability,
    Diagnosis,
    Dispatch,
    Endpoint,
    Exit,
    Failure,
    FailureKind,
    Host,
    Incapable,
    Launch,
    Launcher,
    PluginIdentity,
    PreflightRequest,
    ProgramIdentity,
    ReviewError,
    ReviewRecord,
    ToolSchema,
    ToolUse,
)
from firsthand.review.tools import schemas_digest

PROGRAM = Path(__file__).with_name("fake_program.py")
PLUGIN = PluginIdentity(name="fake", distribution="firsthand-fake", version="0.0.1")
APPROVAL: dict[str, Any] = {"verdict": "approved", "summary": "It doubles.", "findings": []}

_BY_EXIT: dict[str, FailureKind] = {
    "could-not-start": "could-not-start",
    "timed-out": "timed-out",
    "output-limit": "output-limit",
    "transcript-limit": "transcript-limit",
}


def use(tool: str, /, **arguments: Any) -> dict[str, Any]:
    """One call of a script."""
    return {"tool": tool, "arguments": arguments}


@dataclass
class FakeProvider:
    """Implements `Provider`.

    Attributes:
        script: what the program plays.
        answers: the tool answers that the program printed, for the tests.
        over: replaces fields of the record that comes back.
    """

    script: Mapping[str, Any] = field(default_factory=dict)
    over: Mapping[str, Any] = field(default_factory=dict)
    version: str = "1.0"
    answers: list[dict[str, Any]] = field(default_factory=list)
    exit: Exit | None = None
    name: str = "fake"

    def capability(self, host: Host) -> Capability | Incapable:
        if host.environment.get("FAKE_ABSENT"):
            return Incapable("the fake program is absent", "put it back")
        leg = AuthLeg(auth="provider-env", usable=True, detail="none needed", address="127.0.0.1:9")
        return Capability(program=self.program, verification=True, auth=(leg,))

    def preflight(self, request: PreflightRequest, launcher: Launcher) -> Diagnosis:
        script: dict[str, Any] = {"list": True}
        seen: list[ToolSchema] = []
        with launcher.start(self._launch(request.private, script, request.endpoint)) as process:
            for line in process.lines():
                event = json.loads(line)
                if event["type"] == "tools":
                    seen = [
                        ToolSchema(tool["name"], tool["description"], tool["inputSchema"]) for tool in event["tools"]
                    ]
            if process.wait().kind != "exited":
                raise ReviewError("the fake program failed", where="preflight", next_step="look at it")
        return Diagnosis(
            schema_version=1,
            kind=request.kind,
            provider=request.plugin,
            program=self.program,
            model=request.model,
            effort=request.effort,
            flag_set_digest=canonical_digest(["FOLDER"]),
            tool_schemas_digest=schemas_digest(seen, request.output_schema),
            tools=tuple(sorted(tool.name for tool in seen)),
            budget=request.budget,
        )

    def review(self, dispatch: Dispatch, endpoint: Endpoint | None, launcher: Launcher) -> ReviewRecord:
        results: list[bytes] = []
        broken = False
        with launcher.start(self._launch(dispatch.private, dict(self.script), endpoint)) as process:
            for line in process.lines():
                try:
                    event = json.loads(line)
                except ValueError:
                    broken = True
                    continue
                if event.get("type") == "result":
                    results.append(line)
                elif event.get("type") == "answer":
                    self.answers.append(event["answer"])
            ended = self.exit = process.wait()
        answer = json.loads(results[-1])["answer"] if results else None
        transcript = dispatch.private / "transcript.jsonl"
        fields: dict[str, Any] = {
            "program": self.program,
            "session_id": "fake-1",
            "usage": Usage(input_tokens=1, output_tokens=1, cache_read_tokens=0, cache_creation_tokens=0, cost_usd=""),
            "transcripts": (transcript,) if os.path.lexists(transcript) else (),
            "result": results[-1] if results else b"",
            "structured_output": answer,
            "exit": ended,
            "failure": self._failure(ended, results, broken=broken),
        }
        return ReviewRecord(**(fields | dict(self.over)))

    def tool_uses(self, records: Iterable[bytes]) -> tuple[ToolUse, ...]:
        found = [json.loads(record) for record in records]
        if not all(isinstance(record, dict) and record.keys() == {"use", "arguments"} for record in found):
            raise ValueError("not a tool use")
        return tuple(ToolUse(record["use"], record["arguments"]) for record in found)

    def _failure(self, ended: Exit, results: list[bytes], *, broken: bool) -> Failure | None:
        if ended.kind in _BY_EXIT:
            return Failure(_BY_EXIT[ended.kind], ended.detail)
        if ended.kind != "exited" or ended.code != 0:
            return Failure("died", f"{ended.kind} {ended.code}")
        if broken:
            return Failure("stream-broken", "a line that is no event")
        if len(results) != 1:
            return Failure("no-result", f"{len(results)} results")
        return None

    def _launch(self, folder: Path, script: dict[str, Any], endpoint: Endpoint | None) -> Launch:
        if endpoint is not None:
            script |= {"relay": list(endpoint.argv), "environment": dict(endpoint.environment)}
        return Launch(
            argv=(sys.executable, "-I", "-S", str(PROGRAM), str(folder)),
            environment={"PATH": "/usr/bin:/bin"},
            cwd=folder,
            stdin=json.dumps(script).encode(),
        )

    @property
    def program(self) -> ProgramIdentity:
        digest = hashlib.sha256(PROGRAM.read_bytes()).hexdigest()
        return ProgramIdentity(path=str(PROGRAM), version=self.version, sha256=digest)
