"""A plan of 20 mutations on a real project against the bare test runs that it needs."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.harness.bench import Bench
from benchmarks.harness.row import CannotRunError, Row, Samples
from benchmarks.projects.mutating import mutate
from benchmarks.projects.schema import schema_project
from benchmarks.projects.twin import make_twin

_MUTATIONS = 20
_LIMIT = 1.25


def plan(bench: Bench) -> Iterator[Row]:
    """`firsthand mutate --plan` from its start to its end; after each of its runs the same command runs bare."""
    project = schema_project(bench)
    mutations = project.plan(_MUTATIONS)
    plan_file = project.write_plan(bench.scratch / "plan.json", mutations)
    # Warms the battery, the toolchain's digests and the page cache; a plan of one has no twin.
    mutate(bench, project.config, project.write_plan(bench.scratch / "one.json", mutations[:1]))
    whole_s: list[float] = []
    counted_s: list[float] = []
    bare_s: list[float] = []
    control_s: list[float] = []
    sandboxed: list[float] = []
    alone: list[float] = []
    verdicts: dict[str, int] = {}
    for number in range(bench.times(2)):
        twin = make_twin(project, mutations, bench.scratch / f"twin-{number}")
        start = time.perf_counter()
        verdicts = mutate(bench, project.config, plan_file, variables=twin.variables)
        took = time.perf_counter() - start
        runs, observer_s = twin.read()
        pairs = [(float(str(run["sandboxed_s"])), float(str(run["bare_s"]))) for run in runs if run["bare_s"]]
        controls = sum(float(str(run["sandboxed_s"])) for run in runs if run["purpose"] == "control")
        if len(pairs) != 2 * _MUTATIONS + 1:
            raise CannotRunError(f"the plan took {len(pairs)} runs instead of {2 * _MUTATIONS + 1}: {verdicts}")
        whole_s.append(took - observer_s)
        counted_s.append(took - observer_s - controls)
        bare_s.append(sum(bare for _, bare in pairs))
        control_s.append(controls)
        sandboxed += [inside for inside, _ in pairs]
        alone += [bare for _, bare in pairs]
    bare = Samples.of_seconds("41 bare runs", bare_s)
    told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items() if count)
    yield Row(
        about="a plan of 20 mutations on schema, control run apart",
        own=Samples.of_seconds("firsthand mutate", counted_s),
        other=bare,
        figure="ratio",
        limit=_LIMIT,
        note=f"whole process, 41 runs; {told}; --jobs 1",
    )
    yield Row(
        about="the same with its control run",
        own=Samples.of_seconds("firsthand mutate", whole_s),
        other=bare,
        figure="ratio",
    )
    yield Row(about="the control run", own=Samples.of_seconds("control", control_s), other=None, figure="own")
    yield Row(
        about="one test run",
        own=Samples.of_seconds("in the sandbox", sandboxed),
        other=Samples.of_seconds("bare", alone),
        figure="ratio",
        note="from the command's release to its end, without the sandbox's start; inside, pytest also writes a report",
    )
