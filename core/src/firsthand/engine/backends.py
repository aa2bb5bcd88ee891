"""From installed plug-ins to the one backend that commands will run in."""

from __future__ import annotations

from typing import cast

from firsthand.errors import PluginError
from firsthand.isolation.battery.run import Progress, run_battery
from firsthand.isolation.interface import Available, Backend, IsolationError
from firsthand.isolation.selection import (
    Assessment,
    BrokenCandidate,
    Candidate,
    Selected,
    select,
    survey,
)
from firsthand.plugins import BACKENDS, BrokenPlugin, Plugin, discover, load
from firsthand.records import BackendIdentity, BatteryReport
from firsthand.residues import Session, StateDirectory


def candidates() -> list[Candidate | BrokenCandidate]:
    """Every registered backend: loaded, or with the reason why it can't be."""
    catalogue = discover(BACKENDS)
    return [*map(_candidate, catalogue.plugins), *map(_broken, catalogue.broken)]


def select_backend(state: StateDirectory, session: Session, *, progress: Progress | None = None) -> Selected:
    """The first backend whose live battery passes, or passed under the same circumstances.

    Raises:
        IsolationError: none does; its message holds each with its reason.
    """
    return select(
        candidates(), state.cache / "battery", lambda: session.tree("battery"), progress=progress, processes=session
    )


def survey_backends(session: Session, *, progress: Progress | None = None) -> tuple[Assessment, ...]:
    """Every backend, each available one with a live battery; the first without a reason would be selected."""
    return survey(candidates(), lambda: session.tree("battery"), progress=progress, processes=session)


def examine_backend(name: str, session: Session, *, progress: Progress | None = None) -> BatteryReport:
    """One backend's whole battery, live.

    Raises:
        PluginError: it is not installed or can't be loaded.
        IsolationError: it is unavailable here, or the battery's own stage could not be set.
    """
    found = _candidate(discover(BACKENDS).find(name), required=True)
    if isinstance(found, BrokenCandidate):
        raise PluginError(found.reason, where=name, next_step=found.next_step)
    available = found.backend.availability()
    if not isinstance(available, Available):
        raise IsolationError(available.reason, where=name, next_step=available.next_step)
    identity = BackendIdentity(
        name=found.name,
        distribution=found.distribution,
        version=found.version,
        level="os-sandbox",
        profile_digest=available.profile_digest,
        launcher=available.launcher,
    )
    return run_battery(found.backend, identity, session.tree("battery"), progress=progress, processes=session)


def _candidate(plugin: Plugin, *, required: bool = False) -> Candidate | BrokenCandidate:
    try:
        # `load` has checked that it has the members of a backend.
        backend = cast("Backend", load(plugin))
    except PluginError as error:
        if required:
            raise
        return BrokenCandidate(plugin.name, plugin.distribution, plugin.version, error.message, error.next_step)
    return Candidate(plugin.name, plugin.distribution, plugin.version, backend)


def _broken(broken: BrokenPlugin) -> BrokenCandidate:
    return BrokenCandidate(broken.name or "?", " and ".join(broken.owners), "", broken.reason, broken.next_step)
