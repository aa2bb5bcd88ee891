"""Where commands ran and what that place was shown to hold."""

from __future__ import annotations

from typing import Literal, TypeAlias

from firsthand.records.base import Digest, Record

ProbeOutcome: TypeAlias = Literal["passed", "failed", "not-run", "no-control"]
"""`no-control`: the attack could not be shown to work unconfined, so its failure inside proves nothing."""


class ProbeResult(Record):
    """One probe of the battery."""

    id: str
    required: bool
    result: ProbeOutcome
    observed: str
    """What was seen inside the enclosure."""
    control: str
    """What the same attempt did outside; empty for a positive probe, which needs none."""


class Launcher(Record):
    """The operating system's program that a backend starts commands through."""

    path: str
    version: str
    sha256: Digest


class BackendIdentity(Record):
    """The isolation plug-in that ran the commands."""

    name: str
    distribution: str
    version: str
    level: Literal["os-sandbox"]
    profile_digest: Digest
    """Digest of everything that shapes the confinement: options, seccomp program or profile text."""
    launcher: Launcher | None


class BatteryReport(Record):
    """All probes of one live run against one backend on one machine."""

    backend: BackendIdentity
    battery_digest: Digest
    """Digest of the probes' own source, so that a report names the questions it answers."""
    boot_id: str
    kernel: str
    uid: int
    probes: tuple[ProbeResult, ...]
    passed: bool
    """Whether every required probe passed."""


class ToolchainRoot(Record):
    """A read-only root that commands could read beyond the system's own runtime."""

    path: str
    named: bool
    """Whether the definition names it; otherwise it was derived from argv[0]."""
    digest: Digest | None
    """Digest of its content; null for a root that was only derived, of which the executables are digested."""


class Platform(Record):
    """The machine, as far as it bears on the result."""

    system: str
    release: str
    machine: str
    python: str


class Isolation(Record):
    """How the reviewer itself was isolated; decided by the machine, never chosen."""

    level: Literal["os-sandbox", "app-layer"]
    reason: Literal["no-backend", "no-sandbox-provider"] | None
    """Why the level is `app-layer`; null with `os-sandbox`."""
    auth: Literal["oauth-copy", "provider-env", "no-auth"] | None
