"""Hand-made evidence of reviews that keeps every rule."""

from __future__ import annotations

from typing import Any

from evidence.builder import REQUIREMENTS, SOURCE, canonical, check_evidence, definition, digest, entry, mutation, run
from firsthand.records import (
    Budget,
    ControlRun,
    Coverage,
    Dispatch,
    Evidence,
    Finding,
    Isolation,
    Judgement,
    Manifest,
    ProviderIdentity,
    ToolCall,
    Transcript,
    Usage,
)


def call(number: int, tool: str, arguments: dict[str, Any], **changes: Any) -> ToolCall:
    """One call that was answered well."""
    text = canonical(arguments).decode()
    fields: dict[str, Any] = {
        "call": number,
        "tool": tool,
        "arguments_sha256": digest(text.encode()),
        "arguments": text[:2000],
        "result": "ok",
        "code": "",
        "result_sha256": "1" * 64,
        "result_bytes": 100,
        "runs": (),
        "mutation": None,
        "duration_ms": 5,
    }
    return ToolCall(**(fields | changes))


def review_evidence(**changes: Any) -> Evidence:
    """An approval with one file read whole, one check, one caught mutation and one refused call."""
    caught = mutation(4)
    asked = caught.mutation
    dispatch = Dispatch(
        provider=ProviderIdentity(
            name="claude",
            distribution="firsthand-claude",
            version="0.1.0",
            cli_path="/usr/local/bin/claude",
            cli_version="2.0.1",
            cli_sha256="2" * 64,
            model="model-1",
            effort="high",
            session_id="0b0e7a52-6f6c-4c55-9d5b-0f6a3c1f7c11",
        ),
        request_digest="3" * 64,
        diagnosis_digest="4" * 64,
        budget=Budget(timeout_ms=1_800_000, max_turns=40),
        usage=Usage(
            input_tokens=1000, output_tokens=200, cache_read_tokens=10, cache_creation_tokens=20, cost_usd="0.0123"
        ),
        transcript=Transcript(bytes=12_345, sha256="5" * 64),
        server_instances=1,
        tool_calls=(
            call(1, "read_file", {"path": "src/value.py"}),
            call(2, "run_check", {"checkId": "value"}, runs=(1,)),
            call(
                3,
                "mutate_check",
                {"checkId": asked.check, "path": asked.path, "old": asked.old, "new": asked.new},
                runs=(2, 3, 4, 5, 6),
                mutation=0,
            ),
            call(4, "run_shell", {"command": "ls"}, result="refused", code="usage"),
            call(5, "read_file", {"path": "REQUIREMENTS.md"}),
            call(6, "read_file", {"offset": 3, "path": "src/value.py"}, result="error", code="usage"),
        ),
        coverage=(
            Coverage(path="src/value.py", total_bytes=len(SOURCE), delivered_bytes=len(SOURCE), whole=True),
            Coverage(path="REQUIREMENTS.md", total_bytes=len(REQUIREMENTS), delivered_bytes=4, whole=False),
        ),
        unread=("tests/test_value.py", "REQUIREMENTS.md"),
        judgement=Judgement(
            verdict="approved",
            summary="It adds.",
            findings=(Finding(severity="info", path="src/value.py", line=1, message="No type hints."),),
        ),
    )
    control = ControlRun(
        check_id="value",
        path="src/value.py",
        run=3,
        mutated_sha256=digest(b"control"),
        restored_sha256=digest(SOURCE),
    )
    fields: dict[str, Any] = {
        "kind": "review",
        "stage": "final",
        "round": 1,
        "review_runtime": "claude",
        "isolation": Isolation(level="app-layer", reason="no-sandbox-provider", auth="provider-env"),
        "runs": (
            run(1),
            run(2),
            run(3, "control", fails="SyntaxError: invalid syntax"),
            run(4, "restored"),
            run(5, "mutated", fails="assert -1 == 3"),
            run(6, "restored"),
        ),
        "controls": (control,),
        "mutations": (caught,),
        "unprobed": (),
        "dispatch": dispatch,
    }
    return check_evidence(**(fields | changes))


def tool_less_evidence(**changes: Any) -> Evidence:
    """An approval by a reviewer without tools: the package's documents and nothing that ran."""
    text = definition(reviewVerification=None)
    manifest = Manifest(entries=(entry("REQUIREMENTS.md", REQUIREMENTS),))
    full = review_evidence().dispatch
    assert full is not None
    dispatch = full.model_copy(
        update={
            "server_instances": 0,
            "tool_calls": (),
            "coverage": (
                Coverage(
                    path="REQUIREMENTS.md",
                    total_bytes=len(REQUIREMENTS),
                    delivered_bytes=len(REQUIREMENTS),
                    whole=True,
                ),
            ),
            "unread": (),
        }
    )
    fields: dict[str, Any] = {
        "definition": text,
        "definition_digest": digest(text.encode()),
        "manifest": manifest,
        "manifest_digest": manifest.canonical_digest(),
        "execution": "none",
        "enclosing": None,
        "runs": (),
        "test_names": (),
        "controls": (),
        "mutations": (),
        "dispatch": dispatch,
    }
    return review_evidence(**(fields | changes))
