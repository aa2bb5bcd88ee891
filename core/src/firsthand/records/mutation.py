"""A mutation: break a line, watch the same check, restore."""

from __future__ import annotations

from typing import Literal, TypeAlias

from firsthand.records.base import Count, Digest, Mode, Record

Verdict: TypeAlias = Literal["detected", "survived", "timeout", "crash", "not-applied", "not-exercised", "inconclusive"]
"""Only `detected` is a catch."""

MutationCause: TypeAlias = Literal[
    "named-test-failed",
    "exit-code-only",
    "check-stayed-green",
    "deadline",
    "signal",
    "signal-exit-code",
    "output-limit",
    "resource-exhausted",
    "could-not-start",
    "sandbox-failed",
    "cleanup-unknown",
    "copy-drift",
    "old-absent",
    "old-not-unique",
    "old-equals-new",
    "too-large",
    "not-utf-8",
    "path-not-registered",
    "path-missing",
    "check-not-registered",
    "control-stayed-green",
    "same-failure-as-control",
    "no-control",
    "unordinary-exit-code",
    "no-named-test",
    "failed-test-not-in-baseline",
    "counts-drifted",
    "no-tests",
    "ended-early",
    "report-contradicts-exit",
    "report-unreadable",
    "not-green-before",
    "not-green-after",
    "not-restored",
    "cancelled",
]
"""Why a mutation has its verdict."""


class Mutation(Record):
    """One exact replacement, as requested."""

    check: str
    path: str
    old: str
    new: str


class ControlRun(Record):
    """A mutation that must break the loading of a file: shows that the file is what the check really runs."""

    check_id: str
    path: str
    run: Count | None
    """Number of the `CheckRun` with the control in place; null when it could not be tried."""
    mutated_sha256: Digest | None
    """Digest of the file with the control in place."""
    restored_sha256: Digest | None
    """Digest after the exact bytes were put back; null when that could not be established."""


class MutationRun(Record):
    """One mutation and the runs that its verdict rests on."""

    mutation: Mutation
    lane: Count
    before: Count | None
    """Run number of the green run before; may be the `after` of the mutation before it in the same lane."""
    mutated: Count | None
    """Run number of the run with the mutation in place."""
    after: Count | None
    """Run number of the run on the restored bytes."""
    offset_bytes: Count | None
    """Where `old` stood in the file; null when not applied."""
    original_sha256: Digest | None
    mutated_sha256: Digest | None
    restored_sha256: Digest | None
    """Digest after restoring; equal to `original_sha256` in every verdict but an unclear one."""
    restored_mode: Mode | None
    deadline_ms: Count | None
    """Deadline of the mutated run."""
    verdict: Verdict
    cause: MutationCause
