"""From installed plug-ins to the one backend that commands will run in."""

from __future__ import annotations

from typing import cast

from firsthand.errors import PluginError
from firsthand.isolation.battery.run import Progress
from firsthand.isolation.interface import Backend, IsolationError
from firsthand.isolation.selection import (
    Assessment,
    BrokenCandidate,
    Candidate,
    Selected,
    select,
    survey,
)
from firsthand.plugins import BACKENDS, BrokenPlugin, Plugin, discover, load
from firsthand.records import BatteryReport
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
    plugin = discover(BACKENDS).find(name)
    # `load` has checked that it has the members of a backend.
    found = Candidate(plugin.name, plugin.distribution, plugin.version, cast("Backend", load(plugin)))
    (assessment,) = survey([found], lambda: session.tree("battery"), progress=progress, processes=session)
    if assessment.report is None:
        raise IsolationError(assessment.reason, where=name, next_step=assessment.next_step)
    return assessment.report


def _candidate(plugin: Plugin) -> Candidate | BrokenCandidate:
    try:
        backend = cast("Backend", load(plugin))
    except PluginError as error:
        return BrokenCandidate(plugin.name, plugin.distribution, plugin.version, error.message, error.next_step)
    return Candidate(plugin.name, plugin.distribution, plugin.version, backend)


def _broken(broken: BrokenPlugin) -> BrokenCandidate:
    return BrokenCandidate(broken.name or "?", " and ".join(broken.owners), "", broken.reason, broken.next_step)
