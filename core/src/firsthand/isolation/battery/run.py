"""A battery from beginning to end: stage, bench, every probe of this platform, report."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from firsthand.isolation.battery.bench import Bench
from firsthand.isolation.battery.catalogue import PROBES, battery_digest
from firsthand.isolation.battery.machine import boot_id, kernel
from firsthand.isolation.battery.probe import Finding, Probe, counts
from firsthand.isolation.battery.stage import Stage
from firsthand.isolation.interface import Available, Backend, IsolationError, ProcessWatch
from firsthand.records import BackendIdentity, BatteryReport, ProbeResult

Progress: TypeAlias = Callable[[ProbeResult], None]
"""Told each result as soon as it is known."""


class NoWatch:
    """A process watch for callers that keep no register."""

    def started(self, pid: int) -> None:
        """Take no note."""

    def ended(self, pid: int) -> None:
        """Take no note."""


def platform_probes(platform: str = sys.platform) -> tuple[Probe, ...]:
    """The probes that a platform asks, in order."""
    return tuple(probe for probe in PROBES if platform in probe.weights)


def run_battery(
    backend: Backend,
    identity: BackendIdentity,
    workplace: Path,
    *,
    only: Sequence[str] | None = None,
    progress: Progress | None = None,
    processes: ProcessWatch | None = None,
) -> BatteryReport:
    """Run every probe of this platform against one backend, live.

    Takes one to three seconds. For that long the process has a canary in its environment and an inheritable
    descriptor, and there is a folder in /tmp, a file in the home and one in /dev/shm; a battery that is killed leaves
    these three to the next one, which removes them.

    Args:
        backend: what is examined.
        identity: how it stands in the report.
        workplace: existing private folder; a new folder in it is used and removed.
        only: ids of probes to run; the others stand as `not-run` in the report, which then can't have passed.
        progress: told each result as it is known.
        processes: the residue register; none by default.

    Returns:
        The report. A backend that is unavailable, or that raises, gives `not-run` with the reason.

    Raises:
        IsolationError: the core could not set its own stage; says nothing about the backend.
        ValueError: `only` names an unknown probe.
    """
    probes = platform_probes()
    unknown = sorted(set(only or ()) - {probe.id for probe in probes})
    if unknown:
        raise ValueError(f"no such probe on this platform: {', '.join(unknown)}")
    asked = [probe for probe in probes if only is None or probe.id in only]
    findings: dict[str, Finding] = {}
    available = backend.availability()
    if isinstance(available, Available):
        _examine(backend, available, workplace, asked, findings, progress, processes or NoWatch())
        missing = "not asked"
    else:
        missing = f"the backend is unavailable: {available.reason}"
    results = tuple(_result(probe, findings.get(probe.id, Finding("not-run", missing))) for probe in probes)
    return BatteryReport(
        backend=identity,
        battery_digest=battery_digest(),
        boot_id=boot_id(),
        kernel=kernel(),
        uid=os.geteuid() if hasattr(os, "geteuid") else 0,
        probes=results,
        passed=verdict(results),
    )


def verdict(results: Sequence[ProbeResult]) -> bool:
    """Whether every required probe passed; no required probe at all is no pass."""
    required = [result for result in results if result.required]
    return bool(required) and all(result.result == "passed" for result in required)


def _examine(
    backend: Backend,
    available: Available,
    workplace: Path,
    probes: Sequence[Probe],
    findings: dict[str, Finding],
    progress: Progress | None,
    processes: ProcessWatch,
) -> None:
    place = Path(tempfile.mkdtemp(prefix="battery-", dir=workplace))
    try:
        with Stage(place) as stage, Bench(backend, available, stage, processes) as bench:
            bench.make([attempt for probe in probes for attempt in probe.attempts])
            for probe in probes:
                findings[probe.id] = _ask(probe, bench)
                if progress is not None:
                    progress(_result(probe, findings[probe.id]))
    except OSError as error:
        raise IsolationError(
            f"the battery's own stage could not be set: {error}",
            where=str(place),
            next_step="make /tmp and the state directory writable, with some space left, and try again",
        ) from error
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _ask(probe: Probe, bench: Bench) -> Finding:
    try:
        return probe.examine(bench)
    except Exception as error:  # noqa: BLE001 - a probe that breaks is no pass, and the others still get their turn
        return Finding("not-run", f"the probe broke: {type(error).__name__}: {error}")


def _result(probe: Probe, finding: Finding) -> ProbeResult:
    return ProbeResult(
        id=probe.id,
        required=counts(probe.weight(), finding),
        result=finding.result,
        observed=finding.observed,
        control=finding.control,
    )
