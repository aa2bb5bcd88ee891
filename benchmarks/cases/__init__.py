"""All benchmarks by name, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from benchmarks.cases.battery import battery
from benchmarks.cases.check import check
from benchmarks.cases.freeze import freeze_files
from benchmarks.cases.jobs import jobs
from benchmarks.cases.memory import memory
from benchmarks.cases.peers import peers
from benchmarks.cases.plan import plan
from benchmarks.cases.review import review
from benchmarks.cases.start import start
from benchmarks.cases.verify import verify_evidence
from benchmarks.harness.bench import Bench
from benchmarks.harness.row import Row

Case: TypeAlias = Callable[[Bench], Iterable[Row]]

CASES: Final[Mapping[str, Case]] = {
    "battery": battery,
    "check": check,
    "freeze": freeze_files,
    "start": start,
    "verify": verify_evidence,
    "memory": memory,
    "review": review,
    "plan": plan,
    "jobs": jobs,
    "peers": peers,
}
