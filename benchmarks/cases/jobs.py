"""What a second lane saves."""

from __future__ import annotations

import os
from collections.abc import Iterator

from benchmarks.harness.bench import Bench
from benchmarks.harness.clock import in_turns, timed
from benchmarks.harness.row import CannotRunError, Row, Samples
from benchmarks.projects.mutating import mutate
from benchmarks.projects.schema import schema_project

_MUTATIONS = 20
_LIMIT = 0.7


def jobs(bench: Bench) -> Iterator[Row]:
    """The plan of 20 mutations with `--jobs 2` and with `--jobs 1`, whole processes, in turns."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores < 2:
        raise CannotRunError("two lanes need two cores")
    project = schema_project(bench)
    mutations = project.plan(_MUTATIONS)
    plan_file = project.write_plan(bench.scratch / "plan.json", mutations)
    mutate(bench, project.config, project.write_plan(bench.scratch / "one.json", mutations[:1]))
    two_s, one_s = in_turns(
        (
            timed(lambda: mutate(bench, project.config, plan_file, jobs=2)),
            timed(lambda: mutate(bench, project.config, plan_file, jobs=1)),
        ),
        bench.times(2),
        warm_up=0,
    )
    yield Row(
        about="a plan of 20 mutations on schema in two lanes",
        own=Samples.of_seconds("--jobs 2", two_s),
        other=Samples.of_seconds("--jobs 1", one_s),
        figure="ratio",
        limit=_LIMIT,
        note=f"{cores} cores; what else ran on them counts against the second lane",
    )
