"""A real yard: files frozen, a real backend, lanes, and every record kept and recomputed at the end."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from firsthand.canonical import sha256_hex
from firsthand.checks import Ground, Lane, PlacedCheck, Recorder, run_check
from firsthand.definition import Definition, parse_definition
from firsthand.isolation.interface import Backend, Limits, Unavailable, Workspace
from firsthand.mutation import Controls, Registered, run_series
from firsthand.records import (
    BackendIdentity,
    CheckRun,
    ControlRun,
    Enclosing,
    Evidence,
    Executable,
    Mutation,
    MutationRun,
    Platform,
    TestNames,
    ToolCall,
)
from firsthand.rules import (
    DefinitionFacts,
    definition_facts,
    evidence_status,
    record_problems,
    runner_of,
    unprobed_paths,
)
from firsthand.snapshot import Snapshot, freeze
from firsthand_bubblewrap.backend import BubblewrapBackend

VENV = Path(sys.prefix)
PYTHON = str(VENV / "bin" / "python")
PYTEST = (PYTHON, "-m", "pytest", "-q")
UNITTEST = (PYTHON, "-m", "unittest")
NODE = shutil.which("node", path="/usr/bin:/bin")


def cargo_root() -> Path | None:
    """The real Rust toolchain, not rustup's stand-in, which can't run without its home."""
    found = sorted(Path.home().glob(".rustup/toolchains/stable-*/bin/cargo"))
    return found[0].parent.parent if found else None


def go_root() -> Path | None:
    """A Go distribution: where FIRSTHAND_TEST_GO says, or the system's own."""
    candidates = [os.environ.get("FIRSTHAND_TEST_GO", ""), "/usr/lib/go", "/usr/local/go"]
    return next((Path(path) for path in candidates if path and (Path(path) / "bin" / "go").is_file()), None)


@functools.cache
def real_backend() -> Backend | str:
    """The backend of this machine, or why there is none."""
    if sys.platform != "linux":
        return "no backend for tests on this platform"
    backend = BubblewrapBackend()
    state = backend.availability()
    return state.reason if isinstance(state, Unavailable) else backend


@dataclass
class Processes:
    """Remembers what the backend registered and did not take back."""

    alive: set[int] = field(default_factory=set)

    def started(self, pid: int) -> None:
        self.alive.add(pid)

    def ended(self, pid: int) -> None:
        self.alive.discard(pid)


@dataclass
class Kept:
    """A sink that keeps every record."""

    runs: list[CheckRun] = field(default_factory=list)
    tables: dict[str, TestNames] = field(default_factory=dict)
    controls: list[ControlRun] = field(default_factory=list)
    mutations: list[MutationRun] = field(default_factory=list)
    voids: list[str] = field(default_factory=list)

    def next_run(self) -> int:
        return len(self.runs) + 1

    def check_run(self, run: CheckRun, names: TestNames | None) -> None:
        self.runs.append(run)
        if names is not None:
            self.tables.setdefault(names.digest, names)

    def control_run(self, run: ControlRun) -> None:
        self.controls.append(run)

    def mutation_run(self, run: MutationRun) -> None:
        self.mutations.append(run)

    def tool_call(self, call: ToolCall) -> None:
        raise AssertionError("no reviewer here")

    def voided(self, code: str) -> None:
        self.voids.append(code)


@functools.cache
def executable(program: str) -> Executable:
    """The program's path and the digest of what it leads to."""
    return Executable(path=program, sha256=hashlib.sha256(Path(program).read_bytes()).hexdigest())


@functools.cache
def toolchain_roots() -> tuple[Path, ...]:
    roots = (VENV, Path(sys.base_prefix), cargo_root(), go_root())
    found = [root.resolve() for root in roots if root is not None]
    return tuple(dict.fromkeys(root for root in found if not root.is_relative_to("/usr")))


class Yard:
    """One project in `folder / "project"`, frozen, with one check `c` (or several) behind the real backend."""

    def __init__(
        self,
        folder: Path,
        files: Mapping[str, bytes | str],
        command: Sequence[str] = (),
        *,
        checks: Sequence[Mapping[str, Any]] | None = None,
        mutation_paths: Sequence[str] = ("value.py",),
        runner: str | None = None,
        timeout_ms: int = 30_000,
        modes: Mapping[str, int] | None = None,
        backend: Backend | None = None,
        ends_all: bool = True,
        limits: Limits | None = None,
        roots: Sequence[Path] = (),
        path_entries: Sequence[Path] = (),
        prepare: Callable[[Path], None] | None = None,
        shown_at: Path | None = None,
    ) -> None:
        self.project = folder / "project"
        self.project.mkdir(parents=True)
        for path, content in files.items():
            target = self.project / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.encode())
            target.chmod((modes or {}).get(path, 0o644))
        if prepare is not None:
            prepare(self.project)
        one = {"id": "c", "command": list(command), **({"runner": runner} if runner else {})}
        document = {
            "runId": "r",
            "runtime": "test",
            "root": "project",
            "reviewVerification": {
                "files": list(files),
                "checks": [dict(check) for check in checks or [one]],
                "mutationPaths": [path for path in mutation_paths if path in files],
                "timeoutMs": timeout_ms,
            },
        }
        self.definition: Definition = parse_definition(json.dumps(document).encode(), folder)
        self.facts: DefinitionFacts = definition_facts(self.definition.canonical.decode())
        session = folder / "session"
        self.snapshot: Snapshot = freeze(self.definition, session)
        self.processes = Processes()
        found = backend or real_backend()
        if isinstance(found, str):
            pytest.skip(found)
        template = Workspace(
            copy=session,
            shown_at=shown_at or self.definition.root,
            private=session,
            roots=(*toolchain_roots(), *roots),
            path=(*path_entries, VENV / "bin"),
            token="test",
        )
        self.ground = Ground(
            snapshot=self.snapshot,
            folder=session,
            backend=found,
            ends_all=ends_all,
            template=template,
            limits=limits or Limits(),
            processes=self.processes,
        )
        self.checks = {
            check.id: PlacedCheck(
                id=check.id,
                command=check.command,
                runner=runner_of(check.command, check.explicit),
                executable=executable(check.command[0]) if Path(check.command[0]).is_file() else None,
                timeout_ms=timeout_ms,
            )
            for check in self.facts.checks
        }
        self.kept = Kept()
        self.recorder = Recorder(self.kept)
        self.controls = Controls()
        self.source = {path: (self.project / path).read_bytes() for path in files if (self.project / path).exists()}

    def lane(self, number: int = 0) -> Lane:
        return Lane(self.ground, number)

    def check(self, check: str = "c", times: int = 1) -> CheckRun:
        """Run a check in a lane of its own, and recompute every record."""
        with self.lane() as lane:
            runs = [run_check(lane, self.checks[check], self.recorder) for _ in range(times)]
        self.close("check")
        return runs[-1]

    def mutate(
        self, *mutations: tuple[str, str] | Mutation, jobs: int = 1, path: str = "value.py", **fields: Any
    ) -> tuple[MutationRun, ...]:
        """Try mutations of one file by the check `c`, and recompute every record."""
        asked = [
            each if isinstance(each, Mutation) else Mutation(check="c", path=path, old=each[0], new=each[1])
            for each in mutations
        ]
        with ExitStack() as stack:
            lanes = [stack.enter_context(self.lane(number)) for number in range(jobs)]
            results = run_series(
                asked, self.registered, lanes, controls=self.controls, recorder=self.recorder, **fields
            )
        self.close("mutate")
        assert tuple(self.kept.mutations) == results
        return results

    @property
    def registered(self) -> Registered:
        return Registered(
            checks=self.checks, mutation_paths=frozenset(self.facts.mutation_paths), snapshot=self.snapshot
        )

    def evidence(self, kind: Any) -> Evidence:
        """All records so far, as evidence with its own conclusion."""
        kept = self.kept
        text = self.definition.canonical.decode()
        manifest = self.snapshot.manifest
        unsettled = Evidence(
            schema_version=1,
            kind=kind,
            run_id="r",
            stage=None,
            round=None,
            nonce="0" * 64,
            runtime="test",
            review_runtime=None,
            definition=text,
            definition_digest=sha256_hex(text.encode()),
            package_digest=None,
            manifest=manifest,
            manifest_digest=manifest.canonical_digest(),
            platform=Platform(system="test", release="", machine="", python=""),
            execution="sandboxed",
            enclosing=Enclosing(
                backend=BackendIdentity(
                    name="test",
                    distribution="test",
                    version="0",
                    level="os-sandbox",
                    profile_digest="0" * 64,
                    launcher=None,
                ),
                battery_digest="0" * 64,
                not_enforced=(),
                toolchains=(),
                executables=(),
            ),
            isolation=None,
            runs=tuple(kept.runs),
            test_names=tuple(kept.tables.values()),
            controls=tuple(kept.controls),
            mutations=tuple(kept.mutations),
            unprobed=unprobed_paths(self.facts.mutation_paths, manifest, kept.mutations, kept.runs),
            dispatch=None,
            voided=tuple(kept.voids),
            status="passed",
            code="",
            started_at="2026-01-01T00:00:00Z",
            host_version="0",
        )
        status, code = evidence_status(unsettled, self.facts)
        return unsettled.model_copy(update={"status": status, "code": code})

    def close(self, kind: str) -> Evidence:
        """What must hold however the runs went: the records bear each other out, the source is untouched."""
        evidence = self.evidence(kind)
        assert record_problems(evidence, self.facts) == ()
        for path, content in self.source.items():
            assert (self.project / path).read_bytes() == content, f"the source's {path} was written to"
        assert not self.processes.alive
        return evidence


@pytest.fixture
def yard(tmp_path: Path) -> Callable[..., Yard]:
    """Makes yards, each in a folder of its own below the test's."""
    made: list[Yard] = []

    def make(files: Mapping[str, bytes | str], *args: Any, **fields: Any) -> Yard:
        made.append(Yard(tmp_path / f"yard-{len(made)}", files, *args, **fields))
        return made[-1]

    return make
