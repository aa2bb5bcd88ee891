"""The sealed record, schema version 1."""

from __future__ import annotations

from typing import Final, Literal

from firsthand.records.base import Count, Digest, Record
from firsthand.records.check import CheckRun, TestNames
from firsthand.records.isolation import BackendIdentity, Isolation, Platform, ToolchainRoot
from firsthand.records.manifest import Manifest
from firsthand.records.mutation import ControlRun, MutationRun
from firsthand.records.outcome import Executable
from firsthand.records.review import Dispatch

SCHEMA_VERSION: Final = 1


class Enclosing(Record):
    """The confinement that every command of this evidence ran in."""

    backend: BackendIdentity
    battery_digest: Digest
    """Canonical digest of the `BatteryReport` that let the backend be selected."""
    not_enforced: tuple[str, ...]
    """Limits that this machine could not enforce, in plain words."""
    toolchains: tuple[ToolchainRoot, ...]
    executables: tuple[Executable, ...]


class Evidence(Record):
    """What the host saw: one check, mutation series or review."""

    schema_version: Literal[1]
    kind: Literal["check", "mutate", "review"]
    run_id: str
    stage: str | None
    """Null outside a review."""
    round: Count | None
    """Null outside a review."""
    nonce: Digest
    """Random, minted before anything ran: at the claim of a round, else at the start of the session."""
    runtime: str
    review_runtime: str | None
    definition: str
    """Canonical JSON of the definition as written; `definition_digest` is the digest of exactly these bytes."""
    definition_digest: Digest
    package_digest: Digest | None
    """Digest over the manifest entries of the package's documents."""
    manifest: Manifest
    manifest_digest: Digest
    platform: Platform
    execution: Literal["none", "sandboxed"]
    enclosing: Enclosing | None
    """Null exactly when `execution` is `none`."""
    isolation: Isolation | None
    """Null outside a review."""
    runs: tuple[CheckRun, ...]
    test_names: tuple[TestNames, ...]
    controls: tuple[ControlRun, ...]
    mutations: tuple[MutationRun, ...]
    unprobed: tuple[str, ...]
    """Mutation paths that are present and without a `detected` mutation."""
    dispatch: Dispatch | None
    """Null outside a review."""
    voided: tuple[str, ...]
    """Codes that void what was recorded before them (drift, unknown clean-up), in order of time."""
    status: Literal["passed", "failed", "refused", "unknown"]
    code: str
    """The code behind a status other than passed; empty with passed."""
    started_at: str
    """UTC, RFC 3339, by the host's clock: for people; no rule orders by it."""
    host_version: str
