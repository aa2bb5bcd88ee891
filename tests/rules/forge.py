"""Hand-forged records: whatever anyone could write into evidence, sound and unsound."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from firsthand.canonical import canonical_bytes, sha256_hex
from firsthand.records import (
    BackendIdentity,
    Budget,
    CheckRun,
    Command,
    ControlRun,
    Dispatch,
    Enclosing,
    Evidence,
    Excerpt,
    FailedTest,
    Judgement,
    Manifest,
    ManifestEntry,
    Mutation,
    MutationRun,
    Outcome,
    Platform,
    ProviderIdentity,
    RunnerName,
    RunPurpose,
    TestCounts,
    TestNames,
    ToolCall,
)
from firsthand.rules import check_status

ARGV: dict[RunnerName, tuple[str, ...]] = {
    "pytest": ("pytest", "-q"),
    "unittest": ("python3", "-m", "unittest"),
    "node-test": ("node", "--test"),
    "go-test": ("go", "test"),
    "cargo-test": ("cargo", "test"),
    "exit": ("sh", "check.sh"),
}
RED: dict[RunnerName, int] = {
    "pytest": 1,
    "unittest": 1,
    "node-test": 1,
    "go-test": 1,
    "cargo-test": 101,
    "exit": 1,
}
ORIGINAL = b"def add(a, b):\n    return a + b\n"
FROZEN = hashlib.sha256(ORIGINAL).hexdigest()
OTHER = "b" * 64
EMPTY = hashlib.sha256(b"").hexdigest()
NAMES = ("t::a", "t::b", "t::c")


def table(*names: str) -> TestNames:
    return TestNames(digest=sha256_hex(canonical_bytes(list(names))), names=names)


TABLE = table(*NAMES)
TABLES = {TABLE.digest: TABLE}


def exited(code: int, **fields: Any) -> Outcome:
    return outcome("exited", exit_code=code, **fields)


def outcome(kind: Any, **fields: Any) -> Outcome:
    if kind == "output-limit":
        fields.setdefault("limit", "stdout")
    return Outcome(kind=kind, **{"cleanup": "complete", "duration_ms": 100, **fields})


def counts(
    failed: dict[str, str] | None = None,
    *,
    executed: int = 3,
    skipped: int = 0,
    complete: bool = True,
    names: str | None = TABLE.digest,
    total_failed: int | None = None,
) -> TestCounts:
    failures = tuple(FailedTest(name=name, message=message) for name, message in sorted((failed or {}).items()))
    return TestCounts(
        source="report",
        executed=executed,
        failed=len(failures) if total_failed is None else total_failed,
        skipped=skipped,
        failures=failures,
        names=names,
        complete=complete,
    )


def excerpt(text: str = "") -> Excerpt:
    data = text.encode()
    return Excerpt(head=text, tail="", total_bytes=len(data), sha256=hashlib.sha256(data).hexdigest(), truncated=False)


def run(
    number: int,
    purpose: RunPurpose = "baseline",
    *,
    ended: Outcome | None = None,
    tests: TestCounts | None = None,
    runner: RunnerName = "pytest",
    lane: int = 0,
    check: str = "c",
    stderr: str = "",
) -> CheckRun:
    """A run whose status follows from what it shows; green with three tests unless told otherwise."""
    end = ended or exited(0)
    said = None if runner == "exit" else tests if tests is not None or ended is not None else counts()
    status, cause = check_status(runner, end, said)
    return CheckRun(
        run=number,
        check_id=check,
        purpose=purpose,
        lane=lane,
        runner=runner,
        command=Command(
            argv=ARGV[runner], cwd=".", executable=None, outcome=end, stdout=excerpt(), stderr=excerpt(stderr)
        ),
        tests=said,
        status=status,
        cause=cause,
    )


def red(
    number: int,
    purpose: RunPurpose = "mutated",
    failed: dict[str, str] | None = None,
    *,
    runner: RunnerName = "pytest",
    lane: int = 0,
    **fields: Any,
) -> CheckRun:
    """An ordinary failure of the runner, with these tests named."""
    said = {"t::a": "AssertionError: 1 != 2"} if failed is None else failed
    return run(number, purpose, ended=exited(RED[runner]), tests=counts(said, **fields), runner=runner, lane=lane)


def mutation_run(**fields: Any) -> MutationRun:
    values: dict[str, Any] = {
        "mutation": Mutation(check="c", path="src/value.py", old="a + b", new="a - b"),
        "lane": 0,
        "before": 1,
        "mutated": 3,
        "after": 4,
        "offset_bytes": 26,
        "original_sha256": FROZEN,
        "mutated_sha256": OTHER,
        "restored_sha256": FROZEN,
        "restored_mode": 0o644,
        "deadline_ms": 5500,
        "verdict": "detected",
        "cause": "named-test-failed",
    }
    return MutationRun(**{**values, **fields})


def definition(**section: Any) -> str:
    verification = {
        "files": ["src/value.py", "test_value.py"],
        "checks": [{"id": "c", "command": list(ARGV["pytest"])}],
        "mutationPaths": ["src/value.py"],
        "timeoutMs": 60000,
        **section,
    }
    return json.dumps({"runId": "r", "runtime": "x", "reviewVerification": verification})


def manifest(*, present: bool = True) -> Manifest:
    value = ManifestEntry(path="src/value.py", state="present", mode=0o644, size=len(ORIGINAL), links=1, sha256=FROZEN)
    absent = ManifestEntry(path="src/value.py", state="missing", mode=None, size=None, links=None, sha256=None)
    return Manifest(entries=(value if present else absent,))


def control(**fields: Any) -> ControlRun:
    values: dict[str, Any] = {
        "check_id": "c",
        "path": "src/value.py",
        "run": 2,
        "mutated_sha256": "c" * 64,
        "restored_sha256": FROZEN,
    }
    return ControlRun(**{**values, **fields})


def judged(verdict: Any = "approved", **fields: Any) -> Dispatch:
    values: dict[str, Any] = {
        "provider": ProviderIdentity(
            name="p",
            distribution="p",
            version="1",
            cli_path="/p",
            cli_version="1",
            cli_sha256=OTHER,
            model="m",
            effort="",
            session_id="s",
        ),
        "request_digest": OTHER,
        "diagnosis_digest": OTHER,
        "budget": Budget(timeout_ms=1, max_turns=1),
        "usage": None,
        "transcript": None,
        "server_instances": 1,
        "tool_calls": (),
        "coverage": (),
        "unread": (),
        "judgement": Judgement(verdict=verdict, summary="", findings=()) if verdict else None,
    }
    return Dispatch(**{**values, **fields})


def tool_call(number: int, result: Any = "ok") -> ToolCall:
    return ToolCall(
        call=number,
        tool="run_check",
        arguments_sha256=EMPTY,
        arguments="{}",
        result=result,
        code="" if result == "ok" else "x",
        result_sha256=EMPTY,
        result_bytes=0,
        runs=(),
        mutation=None,
        duration_ms=1,
    )


def evidence(**fields: Any) -> Evidence:
    """One detected mutation with its control: green, control red, mutated red, green."""
    text = fields.get("definition", definition())
    files = fields.get("manifest", manifest())
    values: dict[str, Any] = {
        "schema_version": 1,
        "kind": "mutate",
        "run_id": "r",
        "stage": None,
        "round": None,
        "nonce": "0" * 64,
        "runtime": "x",
        "review_runtime": None,
        "definition": text,
        "definition_digest": sha256_hex(text.encode()),
        "package_digest": None,
        "manifest": files,
        "manifest_digest": files.canonical_digest(),
        "platform": Platform(system="Linux", release="6", machine="x86_64", python="3.11"),
        "execution": "sandboxed",
        "enclosing": Enclosing(
            backend=BackendIdentity(
                name="b", distribution="b", version="1", level="os-sandbox", profile_digest=OTHER, launcher=None
            ),
            battery_digest=OTHER,
            not_enforced=(),
            toolchains=(),
            executables=(),
        ),
        "isolation": None,
        "runs": (run(1), run(2, "control", ended=exited(2)), red(3), run(4, "restored")),
        "test_names": (TABLE,),
        "controls": (control(),),
        "mutations": (mutation_run(),),
        "unprobed": (),
        "dispatch": None,
        "voided": (),
        "status": "passed",
        "code": "",
        "started_at": "2026-01-01T00:00:00Z",
        "host_version": "0",
    }
    return Evidence(**{**values, **fields})
