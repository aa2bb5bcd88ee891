"""The provider: starts the program, watches it, and brings back what it saw."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from firsthand.canonical import JSONValue, canonical_digest
from firsthand.review.interface import (
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
    PreflightRequest,
    ProgramIdentity,
    ReviewError,
    ReviewRecord,
    ToolSchema,
    ToolUse,
)
from firsthand.review.tools import schemas_digest
from firsthand_checklist import program
from firsthand_checklist.program import TRANSCRIPT

VERSION = "1.0"
# Isolated from the user's Python: no site packages, no environment, no bytecode written.
PYTHON = (sys.executable, "-I", "-S", "-B")
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


@dataclass
class Watched:
    """What the program said, and how it ended."""

    ended: Exit
    tools: list[dict[str, Any]] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)
    last_line: bytes = b""
    broken: str = ""


@dataclass(frozen=True)
class Plan:
    """What the program does instead of its list.

    Attributes:
        calls: tool and arguments, in a row.
        answer: what it answers; None for no answer.
        refused: whether it ends at once with an error.
        hangs: whether it never ends by itself.
    """

    calls: Sequence[tuple[str, dict[str, Any]]]
    answer: Any
    refused: bool = False
    hangs: bool = False


class ChecklistProvider:
    """Implements `firsthand.review.interface.Provider`.

    Args:
        plan: instead of the list, for tests.
    """

    name = "checklist"

    def __init__(self, plan: Plan | None = None) -> None:
        self._plan = plan

    def capability(self, host: Host) -> Capability | Incapable:
        """Nothing is needed: no login, no key, and a program that comes with the distribution."""
        if host.program is not None:
            return Incapable("this reviewer has a program of its own", "leave the path of the program out")
        path = Path(program.__file__).resolve()
        identity = ProgramIdentity(
            path=str(path), version=VERSION, sha256=hashlib.sha256(path.read_bytes()).hexdigest()
        )
        return Capability(program=identity, verification=True, auth=())

    def preflight(self, request: PreflightRequest, launcher: Launcher) -> Diagnosis:
        """Let the program list the tools that it is really offered, and compare them with the host's."""
        identity = self._program(request.host)
        seen = self._run(launcher, request.private, request.endpoint, ("", ""), review=False)
        problem = _failure(seen)
        if problem is not None:
            raise _missing(f"{problem.kind}: {problem.detail}")
        declared = () if request.endpoint is None else request.endpoint.tools
        shown = [ToolSchema(tool["name"], tool["description"], tool["inputSchema"]) for tool in seen.tools]
        digest = schemas_digest(shown, request.output_schema)
        if digest != schemas_digest(declared, request.output_schema):
            raise _missing("the program was not shown exactly the host's tools")
        return Diagnosis(
            schema_version=1,
            kind=request.kind,
            provider=request.plugin,
            program=identity,
            model=request.model,
            effort=request.effort,
            flag_set_digest=_flag_set_digest(),
            tool_schemas_digest=digest,
            tools=tuple(sorted(tool.name for tool in shown)),
            budget=request.budget,
        )

    def review(self, dispatch: Dispatch, endpoint: Endpoint | None, launcher: Launcher) -> ReviewRecord:
        """One round."""
        identity = self._program(dispatch.host)
        if identity != dispatch.diagnosis.program or _flag_set_digest() != dispatch.diagnosis.flag_set_digest:
            raise _missing("the diagnosis is not of this program")
        seen = self._run(launcher, dispatch.private, endpoint, dispatch.prompt, review=True)
        return ReviewRecord(
            program=identity,
            session_id=dispatch.nonce[:16],
            usage=None,
            transcripts=tuple(dispatch.private.glob(TRANSCRIPT)),
            result=seen.last_line if seen.results else b"",
            structured_output=seen.results[-1].get("answer") if seen.results else None,
            exit=seen.ended,
            failure=_failure(seen) or _no_answer(seen),
        )

    def tool_uses(self, records: Iterable[bytes]) -> tuple[ToolUse, ...]:
        """One use a line, as the program wrote it."""
        uses = []
        for record in records:
            if record:
                value = json.loads(record)
                if not isinstance(value, dict) or not isinstance(value.get("tool"), str):
                    raise ValueError("a record of the transcript is no tool use")
                uses.append(ToolUse(value["tool"], value.get("arguments")))
        return tuple(uses)

    def _program(self, host: Host) -> ProgramIdentity:
        capability = self.capability(host)
        if isinstance(capability, Incapable):
            raise ReviewError(capability.reason, next_step=capability.next_step, code=capability.code)
        return capability.program

    def _run(
        self, launcher: Launcher, private: Path, endpoint: Endpoint | None, prompt: Sequence[str], *, review: bool
    ) -> Watched:
        task = {
            "relay": list(endpoint.argv) if endpoint is not None else None,
            "environment": dict(endpoint.environment) if endpoint is not None else {},
            "prompt": list(prompt),
            "review": review,
            "plan": asdict(self._plan) if self._plan is not None else None,
        }
        launch = Launch(
            argv=(*PYTHON, str(Path(program.__file__).resolve())),
            environment=ENVIRONMENT,
            cwd=private,
            stdin=json.dumps(task).encode(),
        )
        with launcher.start(launch) as process:
            seen = Watched(Exit(kind="cancelled"))
            for line in process.lines():
                seen.broken = seen.broken or _take(line, seen)
                if seen.broken:
                    process.stop()
                    break
            seen.ended = process.wait()
        return seen


def _failure(seen: Watched) -> Failure | None:
    """Why this was no review: a program's success is one of many signs, and all of them must be there."""
    ended = seen.ended
    limits: dict[str, FailureKind] = {
        "could-not-start": "could-not-start",
        "timed-out": "timed-out",
        "output-limit": "output-limit",
        "transcript-limit": "transcript-limit",
    }
    if ended.kind in limits:
        return Failure(limits[ended.kind], ended.detail)
    if seen.broken:
        return Failure("stream-broken", seen.broken)
    if ended.kind != "exited" or ended.code != 0:
        return Failure("died", f"{ended.kind} {ended.code}: {ended.stderr[-200:].decode('utf-8', 'replace')}")
    if len(seen.results) != 1:
        return Failure("no-result", f"{len(seen.results)} final results")
    return None


def _no_answer(seen: Watched) -> Failure | None:
    if seen.results[-1].get("answer") is None:
        return Failure("no-answer", "the program gave no answer")
    return None


def _take(line: bytes, seen: Watched) -> str:
    """Note one event; what is wrong with it, or an empty text."""
    try:
        event = json.loads(line)
        kind = event["type"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return f"a line is no event: {line[:80]!r}"
    if kind == "tools":
        seen.tools = event["tools"]
    elif kind == "result":
        seen.results.append(event)
        seen.last_line = line
    return ""


def _flag_set_digest() -> str:
    options: list[JSONValue] = [*PYTHON[1:]]
    environment: dict[str, JSONValue] = dict(ENVIRONMENT)
    return canonical_digest({"argv": options, "environment": environment})


def _missing(message: str) -> ReviewError:
    return ReviewError(
        f"the preflight failed: {message}",
        where="checklist",
        next_step="repair what it names, and run `firsthand preflight` again",
        code="tool_preflight_missing",
    )
