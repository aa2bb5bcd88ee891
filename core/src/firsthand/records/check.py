"""A registered check that ran, and what its tests said."""

from __future__ import annotations

from typing import Literal, TypeAlias

from firsthand.records.base import Count, Digest, Record
from firsthand.records.outcome import Command

RunnerName: TypeAlias = Literal["pytest", "unittest", "node-test", "go-test", "cargo-test", "exit"]
"""How a check's tests are counted; `exit` counts nothing and trusts the exit code knowingly."""

RunPurpose: TypeAlias = Literal["baseline", "mutated", "restored", "control"]
"""What the working copy held: the frozen bytes (`baseline`, `restored`), a mutation, or a control mutation."""

CheckStatus: TypeAlias = Literal["passed", "failed", "inconclusive", "unknown"]
"""`unknown`: the sandbox failed or the end of the command is unknown; `inconclusive`: exit 0 that proves nothing."""

CheckCause: TypeAlias = Literal[
    "exit-zero",
    "exit-nonzero",
    "signalled",
    "signal-exit-code",
    "timed-out",
    "output-limit",
    "could-not-start",
    "sandbox-failed",
    "cleanup-unknown",
    "no-tests",
    "all-skipped",
    "ended-early",
    "report-contradicts-exit",
    "report-unreadable",
]
"""Why a check has its status."""


class FailedTest(Record):
    """A test that the runner named as failed."""

    name: str
    message: str
    """First line of the failure, at most 200 characters; what tells one failure of a test from another."""


class TestCounts(Record):
    """What the runner said of its tests: the checked code's own word, which may only lower a verdict."""

    source: Literal["report", "summary"]
    executed: Count
    """Passed and failed together; skipped tests are not executed."""
    failed: Count
    skipped: Count
    failures: tuple[FailedTest, ...]
    """At most 64, sorted by name."""
    names: Digest | None
    """Digest of the `TestNames` that lists every executed test; null when the runner named none."""
    complete: bool
    """Whether the runner finished its report or summary."""


class TestNames(Record):
    """The sorted names of all tests that a run executed, kept once however many runs executed the same set."""

    digest: Digest
    """SHA-256 over the canonical JSON of `names`."""
    names: tuple[str, ...]


class CheckRun(Record):
    """One run of one registered check."""

    run: Count
    """Number of this run in its evidence, from 1, in order of time."""
    check_id: str
    purpose: RunPurpose
    lane: Count
    """Working copy it ran in; runs of one lane follow each other."""
    runner: RunnerName
    command: Command
    tests: TestCounts | None
    """Null when the runner is `exit` or said nothing that could be read."""
    status: CheckStatus
    cause: CheckCause
