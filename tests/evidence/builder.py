"""Hand-made evidence that keeps every rule, and the means to forge it.

The layout of a sealed file is written here a second time, with the standard library alone, so that the tests do not
take the product's word for it.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from firsthand.records import (
    BackendIdentity,
    CheckRun,
    Command,
    ControlRun,
    Enclosing,
    Evidence,
    Excerpt,
    Executable,
    FailedTest,
    Launcher,
    Manifest,
    ManifestEntry,
    Mutation,
    MutationRun,
    Outcome,
    Platform,
    RunPurpose,
    TestCounts,
    TestNames,
)

SOURCE = b"def add(a, b):\n    return a + b\n"
TEST_SOURCE = b"from value import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"
REQUIREMENTS = b"add adds.\n"
FILES = {"src/value.py": SOURCE, "tests/test_value.py": TEST_SOURCE, "REQUIREMENTS.md": REQUIREMENTS}
PYTHON = Executable(path="/usr/bin/python3", sha256="e" * 64)
COMMAND = ["python3", "-m", "pytest", "tests/test_value.py"]
NAMES = ("tests/test_value.py::test_add",)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def canonical(value: Any) -> bytes:
    """Canonical JSON for values whose keys are ASCII, by the standard library alone."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def reseal(body: Any, envelope: Any = None) -> bytes:
    """What a forger writes: the layout of a sealed file around any body, with a digest that fits."""
    return (
        canonical(
            {
                "digest": digest(canonical(body)),
                "envelope": envelope,
                "evidence": body,
                "schema": "https://firsthand.dev/evidence/v1",
            }
        )
        + b"\n"
    )


def forged(evidence: Evidence, change: Callable[[Any], None]) -> bytes:
    """Evidence with a change in its plain JSON, resealed."""
    body = copy.deepcopy(evidence.as_json())
    change(body)
    return reseal(body)


def rebind(body: Any) -> None:
    """Recompute every inner digest that a forger can recompute."""
    body["manifestDigest"] = digest(canonical(body["manifest"]))
    body["definitionDigest"] = digest(body["definition"].encode())


def definition(**changes: Any) -> str:
    """A definition as its canonical text; a change of None leaves the field out."""
    value: dict[str, Any] = {
        "runId": "demo-1",
        "root": ".",
        "runtime": "codex",
        "reviewRuntime": "claude",
        "stages": ["root-cause", "final"],
        "maxRounds": 5,
        "package": {"requirements": ["REQUIREMENTS.md"], "instructions": []},
        "reviewVerification": {
            "files": list(FILES),
            "checks": [{"id": "value", "command": COMMAND}],
            "mutationPaths": ["src/value.py"],
            "timeoutMs": 60000,
        },
    }
    value |= changes
    return canonical({key: field for key, field in value.items() if field is not None}).decode()


def entry(path: str, data: bytes | None, mode: int = 0o644) -> ManifestEntry:
    if data is None:
        return ManifestEntry(path=path, state="missing", mode=None, size=None, links=None, sha256=None)
    return ManifestEntry(path=path, state="present", mode=mode, size=len(data), links=1, sha256=digest(data))


def excerpt(text: str = "") -> Excerpt:
    data = text.encode()
    return Excerpt(head=text, tail="", total_bytes=len(data), sha256=digest(data), truncated=False)


PACKAGE_DIGEST = Manifest(entries=(entry("REQUIREMENTS.md", REQUIREMENTS),)).canonical_digest()
NAMES_TABLE = TestNames(digest=digest(canonical(list(NAMES))), names=NAMES)


def run(
    number: int, purpose: RunPurpose = "baseline", *, lane: int = 0, fails: str = "", check: str = "value"
) -> CheckRun:
    """One run of pytest; `fails` is the message of its one failing test."""
    failures = (FailedTest(name=NAMES[0], message=fails),) if fails else ()
    return CheckRun(
        run=number,
        check_id=check,
        purpose=purpose,
        lane=lane,
        runner="pytest",
        command=Command(
            argv=tuple(COMMAND),
            cwd=".",
            executable=PYTHON,
            outcome=Outcome(kind="exited", exit_code=1 if fails else 0, cleanup="complete", duration_ms=300),
            stdout=excerpt(f"1 {'failed' if fails else 'passed'} in 0.01s\n"),
            stderr=excerpt(),
        ),
        tests=TestCounts(
            source="report",
            executed=1,
            failed=len(failures),
            skipped=0,
            failures=failures,
            names=NAMES_TABLE.digest,
            complete=True,
        ),
        status="failed" if fails else "passed",
        cause="exit-nonzero" if fails else "exit-zero",
    )


def mutation(before: int, *, number: int = 0, lane: int = 0) -> MutationRun:
    """A detected mutation whose three runs follow each other."""
    new = f"a - b - {number}"
    mutated = SOURCE.replace(b"a + b", new.encode())
    return MutationRun(
        mutation=Mutation(check="value", path="src/value.py", old="a + b", new=new),
        lane=lane,
        before=before,
        mutated=before + 1,
        after=before + 2,
        offset_bytes=SOURCE.index(b"a + b"),
        original_sha256=digest(SOURCE),
        mutated_sha256=digest(mutated),
        restored_sha256=digest(SOURCE),
        restored_mode=0o644,
        deadline_ms=6500,
        verdict="detected",
        cause="named-test-failed",
    )


ENCLOSING = Enclosing(
    backend=BackendIdentity(
        name="bubblewrap",
        distribution="firsthand-bubblewrap",
        version="0.1.0",
        level="os-sandbox",
        profile_digest="a" * 64,
        launcher=Launcher(path="/usr/bin/bwrap", version="0.8.0", sha256="b" * 64),
    ),
    battery_digest="c" * 64,
    not_enforced=("memory of all processes together",),
    toolchains=(),
    executables=(PYTHON,),
)


def check_evidence(**changes: Any) -> Evidence:
    """One check, one run."""
    text = definition()
    manifest = Manifest(entries=tuple(entry(path, data) for path, data in FILES.items()))
    fields: dict[str, Any] = {
        "schema_version": 1,
        "kind": "check",
        "run_id": "demo-1",
        "stage": None,
        "round": None,
        "nonce": "d" * 64,
        "runtime": "codex",
        "review_runtime": None,
        "definition": text,
        "definition_digest": digest(text.encode()),
        "package_digest": PACKAGE_DIGEST,
        "manifest": manifest,
        "manifest_digest": manifest.canonical_digest(),
        "platform": Platform(system="Linux", release="6.1.0", machine="x86_64", python="3.11.7"),
        "execution": "sandboxed",
        "enclosing": ENCLOSING,
        "isolation": None,
        "runs": (run(1),),
        "test_names": (NAMES_TABLE,),
        "controls": (),
        "mutations": (),
        "unprobed": ("src/value.py",),
        "dispatch": None,
        "voided": (),
        "status": "passed",
        "code": "",
        "started_at": "2026-01-02T03:04:05Z",
        "host_version": "0.1.0",
    }
    return Evidence(**(fields | changes))


def mutate_evidence(count: int = 2, **changes: Any) -> Evidence:
    """A control and `count` detected mutations in one lane: 2 * count + 1 runs and the control's two."""
    runs = [run(1), run(2, "control", fails="SyntaxError: invalid syntax"), run(3, "restored")]
    mutations = []
    for number in range(count):
        before = len(runs)
        runs += [run(before + 1, "mutated", fails="assert -1 == 3"), run(before + 2, "restored")]
        mutations.append(mutation(before, number=number))
    control = ControlRun(
        check_id="value",
        path="src/value.py",
        run=2,
        mutated_sha256=digest(b"control"),
        restored_sha256=digest(SOURCE),
    )
    fields: dict[str, Any] = {
        "kind": "mutate",
        "runs": tuple(runs),
        "controls": (control,),
        "mutations": tuple(mutations),
        "unprobed": (),
    }
    return check_evidence(**(fields | changes))


def interleaved_evidence(**changes: Any) -> Evidence:
    """Three mutations for two checks in lane 0, and one in lane 1 at the same time; numbers are by time of ending."""
    text = definition(
        reviewVerification={
            "files": list(FILES),
            "checks": [{"id": "value", "command": COMMAND}, {"id": "other", "command": COMMAND}],
            "mutationPaths": ["src/value.py"],
            "timeoutMs": 60000,
        }
    )
    broken = "SyntaxError: invalid syntax"
    wrong = "assert -1 == 3"
    runs = (
        run(1),
        run(2, lane=1),
        run(3, "control", fails=broken),
        run(4, "mutated", fails=wrong),
        run(5, "mutated", fails=wrong, lane=1),
        run(6, "restored"),
        run(7, check="other"),
        run(8, "restored", lane=1),
        run(9, "control", fails=broken, check="other"),
        run(10, "mutated", fails=wrong, check="other"),
        run(11, "restored", check="other"),
        run(12, "mutated", fails=wrong),
        run(13, "restored"),
    )

    def tried(number: int, check: str, lane: int, before: int, mutated: int, after: int) -> MutationRun:
        one = mutation(1, number=number, lane=lane)
        places = {"before": before, "mutated": mutated, "after": after}
        return one.model_copy(update=places | {"mutation": one.mutation.model_copy(update={"check": check})})

    control = {"path": "src/value.py", "mutated_sha256": digest(b"control"), "restored_sha256": digest(SOURCE)}
    fields: dict[str, Any] = {
        "definition": text,
        "definition_digest": digest(text.encode()),
        "runs": runs,
        "controls": (ControlRun(check_id="value", run=3, **control), ControlRun(check_id="other", run=9, **control)),
        "mutations": (
            tried(0, "value", 0, 1, 4, 6),
            tried(1, "value", 1, 2, 5, 8),
            tried(2, "other", 0, 7, 10, 11),
            tried(3, "value", 0, 6, 12, 13),
        ),
    }
    return mutate_evidence(**(fields | changes))


def plant(root: Path) -> Path:
    """Write the frozen files below a folder, as the manifest has them."""
    for path, data in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
        (root / path).chmod(0o644)
    return root
