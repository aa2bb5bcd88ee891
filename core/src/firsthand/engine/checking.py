"""`firsthand check`: run every registered check once on the frozen bytes and seal what was seen."""

from __future__ import annotations

from pathlib import Path

from firsthand.checks import CleanupUnknownError, Lane, run_check
from firsthand.engine.preparation import Prepared, prepare
from firsthand.engine.sealing import Sealed, foresee, seal_run
from firsthand.errors import FirsthandError
from firsthand.isolation.battery.run import Progress
from firsthand.plugins import Observers


def run_checks(
    config: Path,
    *,
    state_path: Path | None,
    out: Path | None,
    key: Path | None,
    observers: Observers,
    progress: Progress | None = None,
) -> Sealed:
    """Freeze, run, compare, seal.

    A check that can no longer run (the copy drifted, an end is unknown) ends the series; what was recorded is sealed
    with the reason.

    Raises:
        FirsthandError: nothing could be run; see `prepare`.
    """
    with prepare(config, state_path, observers, progress=progress) as prepared:
        destination = foresee(prepared, out, key)
        with Lane(prepared.ground, 0) as lane:
            for check in prepared.checks.values():
                prepared.observers.check_started(check.id, "baseline", lane.number)
                run_check(lane, check, prepared.recorder)
                if lane.spoiled is not None:
                    keep_if_unknown(prepared, lane.spoiled)
                    break
        return seal_run(prepared, "check", destination)


def keep_if_unknown(prepared: Prepared, spoiled: FirsthandError) -> None:
    """Keep the working copies when a command's end is unknown: something may still be writing there."""
    if isinstance(spoiled, CleanupUnknownError):
        prepared.session.keep(prepared.ground.folder, spoiled.message)
