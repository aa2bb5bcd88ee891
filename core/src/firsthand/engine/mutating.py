"""`firsthand mutate`: break lines on purpose, one at a time, and seal what the checks made of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from firsthand.checks import Lane
from firsthand.engine.checking import keep_if_unknown
from firsthand.engine.preparation import prepare
from firsthand.engine.sealing import Sealed, foresee, seal_run
from firsthand.isolation.battery.run import Progress
from firsthand.mutation import Controls, Registered, run_series
from firsthand.plugins import Observers
from firsthand.records import Mutation


def run_mutations(
    config: Path,
    mutations: Sequence[Mutation],
    *,
    jobs: int,
    state_path: Path | None,
    out: Path | None,
    key: Path | None,
    observers: Observers,
    progress: Progress | None = None,
) -> Sealed:
    """Freeze, try every mutation over `jobs` working copies, compare, seal.

    Raises:
        FirsthandError: nothing could be run; see `prepare`.
    """
    with prepare(config, state_path, observers, progress=progress) as prepared:
        destination = foresee(prepared, out, key)
        registered = Registered(
            checks=prepared.checks,
            mutation_paths=frozenset(prepared.verification.mutation_paths),
            snapshot=prepared.snapshot,
        )
        with ExitStack() as stack:
            lanes = [stack.enter_context(Lane(prepared.ground, number)) for number in range(min(jobs, len(mutations)))]
            run_series(mutations, registered, lanes, controls=Controls(), recorder=prepared.recorder)
            for lane in lanes:
                if lane.spoiled is not None:
                    keep_if_unknown(prepared, lane.spoiled)
        return seal_run(prepared, "mutate", destination)
