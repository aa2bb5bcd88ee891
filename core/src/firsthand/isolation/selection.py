"""The selection that fails closed: the first backend whose battery passes, or a refusal that names every reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from firsthand.isolation.battery.cache import ReportCache
from firsthand.isolation.battery.run import Progress, run_battery
from firsthand.isolation.interface import Available, Backend, IsolationError, ProcessWatch
from firsthand.records import BackendIdentity, BatteryReport, ProbeResult

_NO_BACKEND = (
    "install firsthand-bubblewrap (Linux) or firsthand-seatbelt (macOS); `firsthand plugins` lists what is there"
)
_DOCTOR = "run `firsthand doctor` to see every probe and what it saw"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A backend that was loaded."""

    name: str
    distribution: str
    version: str
    backend: Backend


@dataclass(frozen=True, slots=True)
class BrokenCandidate:
    """A backend that could not be loaded, with the reason as data."""

    name: str
    distribution: str
    version: str
    reason: str
    next_step: str


@dataclass(frozen=True, slots=True)
class Assessment:
    """One candidate and what came of it.

    Attributes:
        available: what the backend said about itself; None if it is unavailable, broken, or raised.
        report: of its battery; None if there was none.
        cached: whether the report is one that passed earlier under the same circumstances.
        reason: why it can't be used; empty for one that can.
        next_step: what to do about that.
    """

    name: str
    distribution: str
    version: str
    backend: Backend | None = None
    available: Available | None = None
    identity: BackendIdentity | None = None
    report: BatteryReport | None = None
    cached: bool = False
    reason: str = ""
    next_step: str = ""

    def told(self) -> str:
        """Name, version, distribution and reason, for a refusal."""
        return f"{self.name} ({self.distribution} {self.version}): {self.reason}"


@dataclass(frozen=True, slots=True)
class Selected:
    """The backend that commands will run in.

    Attributes:
        rejected: those that stood before it.
    """

    backend: Backend
    available: Available
    identity: BackendIdentity
    report: BatteryReport
    cached: bool
    rejected: tuple[Assessment, ...]


class RunsBattery(Protocol):
    """`run_battery`, or what a test puts in its place."""

    def __call__(
        self,
        backend: Backend,
        identity: BackendIdentity,
        workplace: Path,
        *,
        progress: Progress | None = None,
        processes: ProcessWatch | None = None,
    ) -> BatteryReport:
        """Run every probe against one backend."""


def select(
    candidates: Iterable[Candidate | BrokenCandidate],
    cache_folder: Path,
    workplace: Callable[[], Path],
    *,
    progress: Progress | None = None,
    processes: ProcessWatch | None = None,
    battery: RunsBattery = run_battery,
) -> Selected:
    """The first backend, from the highest priority down, whose battery passes.

    Backends of the same priority are tried in the order of their names, then of their distributions. A battery that
    passed earlier under the same circumstances is not run again.

    Args:
        candidates: every backend that is registered, loaded or not.
        cache_folder: private folder for reports of passed batteries; made if it is not there.
        workplace: gives a private folder; called only if a battery has to run.
        progress: told each probe's result as it is known.
        processes: the residue register.
        battery: runs it.

    Raises:
        IsolationError: none passes, or there is none at all. Its message holds each candidate with its reason and, if
            its battery ran, the first probe that it failed.
    """
    cache = ReportCache(cache_folder)
    rejected: list[Assessment] = []
    for found in _in_order(candidates):
        assessment = found
        if found.available is not None:
            assessment = _examine(found, cache, workplace, progress, processes, battery)
        if assessment.reason:
            rejected.append(assessment)
            continue
        if assessment.backend and assessment.available and assessment.identity and assessment.report:
            return Selected(
                backend=assessment.backend,
                available=assessment.available,
                identity=assessment.identity,
                report=assessment.report,
                cached=assessment.cached,
                rejected=tuple(rejected),
            )
    raise refusal(rejected)


def survey(
    candidates: Iterable[Candidate | BrokenCandidate],
    workplace: Callable[[], Path],
    *,
    progress: Progress | None = None,
    processes: ProcessWatch | None = None,
    battery: RunsBattery = run_battery,
) -> tuple[Assessment, ...]:
    """Every candidate in the order of selection, each available one with a live battery; nothing is cached or raised.

    The first without a reason is what `select` would choose.
    """
    return tuple(
        found if found.available is None else _examine(found, None, workplace, progress, processes, battery)
        for found in _in_order(candidates)
    )


def refusal(rejected: Sequence[Assessment]) -> IsolationError:
    """The error for a machine on which no backend can be used."""
    if not rejected:
        return IsolationError("no isolation backend is installed", where="firsthand.backends", next_step=_NO_BACKEND)
    return IsolationError(
        "no isolation backend can be used here; " + "; ".join(assessment.told() for assessment in rejected),
        where="firsthand.backends",
        next_step=rejected[0].next_step,
    )


def _in_order(candidates: Iterable[Candidate | BrokenCandidate]) -> list[Assessment]:
    """Ask each for its availability; by priority, then by name. What can't be tried stands at the end."""
    found = [_ask(candidate) for candidate in candidates]
    return sorted(
        found,
        key=lambda one: (
            one.available is None,
            -one.available.priority if one.available else 0,
            one.name,
            one.distribution,
        ),
    )


def _ask(candidate: Candidate | BrokenCandidate) -> Assessment:
    named = (candidate.name, candidate.distribution, candidate.version)
    if isinstance(candidate, BrokenCandidate):
        return Assessment(*named, reason=candidate.reason, next_step=candidate.next_step)
    try:
        answer = candidate.backend.availability()
        if not isinstance(answer, Available):
            reason = answer.reason or "it gives no reason"
            return Assessment(*named, backend=candidate.backend, reason=reason, next_step=answer.next_step or _DOCTOR)
        priority: object = answer.priority
        if not isinstance(priority, int):
            return Assessment(*named, backend=candidate.backend, reason="its priority is no number", next_step=_DOCTOR)
        identity = BackendIdentity(
            name=candidate.name,
            distribution=candidate.distribution,
            version=candidate.version,
            level="os-sandbox",
            profile_digest=answer.profile_digest,
            launcher=answer.launcher,
        )
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a plug-in that raises is a plug-in that can't be used
        return Assessment(*named, backend=candidate.backend, reason=_raised("availability", error), next_step=_DOCTOR)
    return Assessment(*named, backend=candidate.backend, available=answer, identity=identity)


def _examine(
    found: Assessment,
    cache: ReportCache | None,
    workplace: Callable[[], Path],
    progress: Progress | None,
    processes: ProcessWatch | None,
    battery: RunsBattery,
) -> Assessment:
    """Put an available backend through its battery, or find that it passed earlier."""
    backend, available, identity = found.backend, found.available, found.identity
    if backend is None or available is None or identity is None:
        return found
    known = (found.name, found.distribution, found.version, backend, available, identity)
    report = cache.find(identity) if cache is not None else None
    if report is not None:
        return Assessment(*known, report=report, cached=True)
    try:
        report = battery(backend, identity, workplace(), progress=progress, processes=processes)
    except IsolationError as error:
        return Assessment(*known, reason=error.message, next_step=error.next_step)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
        return Assessment(*known, reason=_raised("its battery", error), next_step=_DOCTOR)
    if not report.passed:
        return Assessment(*known, report=report, reason=_failing(report.probes), next_step=_DOCTOR)
    if cache is not None:
        cache.keep(report)
    return Assessment(*known, report=report)


def _failing(probes: Sequence[ProbeResult]) -> str:
    bad = [probe for probe in probes if probe.required and probe.result != "passed"]
    if not bad:
        return "its battery has no required probe on this platform"
    first = bad[0]
    others = f", and {len(bad) - 1} more: {', '.join(probe.id for probe in bad[1:])}" if bad[1:] else ""
    detail = first.observed if first.result != "no-control" else f"{first.observed}; control: {first.control}"
    return f"probe {first.id} {first.result} ({detail}){others}"


def _raised(what: str, error: BaseException) -> str:
    return f"{what} raised {type(error).__name__}: {error}"
