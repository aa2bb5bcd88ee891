"""A series of mutations over one or more lanes, with results in the plan's order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from firsthand.checks import Lane, PlacedCheck, Recorder
from firsthand.mutation.controls import Controls
from firsthand.mutation.replacement import Replacement, replace_once
from firsthand.mutation.trial import Trials, interruption_of
from firsthand.records import Mutation, MutationCause, MutationRun, Verdict
from firsthand.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Registered:
    """What a definition opens to mutations.

    Attributes:
        checks: the registered checks, by id.
        mutation_paths: the files that may be broken on purpose.
        snapshot: the frozen files.
    """

    checks: Mapping[str, PlacedCheck]
    mutation_paths: frozenset[str]
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class _Task:
    """A mutation that applies. Its bytes are read again when its turn comes: a thousand files are not kept."""

    mutation: Mutation
    check: PlacedCheck


def run_series(
    mutations: Sequence[Mutation],
    registered: Registered,
    lanes: Sequence[Lane],
    *,
    controls: Controls,
    recorder: Recorder,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[MutationRun, ...]:
    """Try every mutation; each gets exactly one record, entered and returned in the order given.

    Args:
        mutations: what is asked for; those that do not apply are recorded as `not-applied` and run nothing.
        registered: checks, paths and frozen files.
        lanes: one or more open lanes, each with a number of its own; one thread each.
        controls: the controls tried so far in this session.
        recorder: gets every record, mutations in the order given; called from the lanes' threads, one at a time.
        cancelled: asked between commands and while they run, from the lanes' threads. Once true, running commands are
            ended, bytes are restored, and what is left is recorded as cancelled.

    Returns:
        One record for each mutation. When a lane ends by drift or an unknown clean-up the others stop as well, and
        what is left is recorded with that cause: nothing recorded in this session would count any more.

    Raises:
        ValueError: no lane, or a lane number twice.
        BaseException: an interrupt, or a fault of ours. All that can be recorded is recorded before it is passed on;
            the copies of lanes that were in the middle of something are discarded with them.
    """
    if not lanes or len({lane.number for lane in lanes}) != len(lanes):
        raise ValueError("a series needs at least one lane, each with a number of its own")
    tasks = [_prepare(mutation, registered) for mutation in mutations]
    applied = [position for position, task in enumerate(tasks) if isinstance(task, _Task)]
    series = _Series(tasks, mutations, recorder, cancelled)
    for position, task in enumerate(tasks):
        if not isinstance(task, _Task):
            series.finish(position, _nothing_ran(mutations[position], lanes[0].number, "not-applied", task))
    used = lanes[: max(1, min(len(lanes), len(applied)))]
    positions = iter(applied)
    work = [
        partial(
            series.work, lane, Trials(lane, registered.snapshot, controls, recorder, series.reason_to_stop), positions
        )
        for lane in used
    ]
    try:
        if len(work) == 1:
            # In the caller's own thread, so that an interrupt reaches the command itself.
            work[0]()
        else:
            _in_threads(work, series)
    finally:
        series.close(lanes[0].number)
    return series.results()


def _in_threads(work: Sequence[Callable[[], None]], series: _Series) -> None:
    with ThreadPoolExecutor(len(work), thread_name_prefix="firsthand-lane") as pool:
        futures = [pool.submit(each) for each in work]
        try:
            for future in futures:
                future.result()
        except BaseException:
            series.stop("cancelled")
            raise


def _prepare(mutation: Mutation, registered: Registered) -> _Task | MutationCause:
    """What there is to run for a mutation, or why it does not apply."""
    check = registered.checks.get(mutation.check)
    if check is None:
        return "check-not-registered"
    if mutation.path not in registered.mutation_paths:
        return "path-not-registered"
    entry = registered.snapshot.manifest.entry(mutation.path)
    if entry is None or entry.state == "missing":
        return "path-missing"
    original = registered.snapshot.read(mutation.path)
    replacement = replace_once(original, mutation)
    return _Task(mutation, check) if isinstance(replacement, Replacement) else replacement


def _nothing_ran(mutation: Mutation, lane: int, verdict: Verdict, cause: MutationCause) -> MutationRun:
    return MutationRun(
        mutation=mutation,
        lane=lane,
        before=None,
        mutated=None,
        after=None,
        offset_bytes=None,
        original_sha256=None,
        mutated_sha256=None,
        restored_sha256=None,
        restored_mode=None,
        deadline_ms=None,
        verdict=verdict,
        cause=cause,
    )


class _Series:
    """Shared by the lanes of one series: hands out positions, enters records in order, stops all when one must."""

    def __init__(
        self,
        tasks: Sequence[_Task | MutationCause],
        mutations: Sequence[Mutation],
        recorder: Recorder,
        cancelled: Callable[[], bool],
    ) -> None:
        self._tasks = tasks
        self._mutations = mutations
        self._recorder = recorder
        self._cancelled = cancelled
        self._lock = threading.Lock()
        self._done: dict[int, MutationRun] = {}
        self._entered = 0
        self._stopped: MutationCause | None = None

    def reason_to_stop(self) -> MutationCause | None:
        """Why no further command should run, or None."""
        if self._stopped is None and self._cancelled():
            self.stop("cancelled")
        return self._stopped

    def stop(self, cause: MutationCause) -> None:
        """Let no further trial begin; the first cause stays."""
        with self._lock:
            self._stopped = self._stopped or cause

    def work(self, lane: Lane, trials: Trials, positions: Iterator[int]) -> None:
        """Take positions until none is left or the series stops."""
        while self.reason_to_stop() is None:
            with self._lock:
                position = next(positions, None)
            task = self._tasks[position] if position is not None else None
            if position is None or not isinstance(task, _Task):
                return
            try:
                trials.run(task.mutation, task.check, partial(self.finish, position))
            except BaseException:
                self.stop("cancelled")
                raise
            if lane.spoiled is not None:
                self.stop(interruption_of(lane.spoiled))

    def finish(self, position: int, run: MutationRun) -> None:
        """Keep one record, and enter all that now stand in an unbroken row."""
        with self._lock:
            self._done[position] = run
            while self._entered in self._done:
                self._recorder.mutation_run(self._done[self._entered])
                self._entered += 1

    def close(self, lane: int) -> None:
        """Record what was never tried, with the reason why the series stopped."""
        cause = self._stopped or "cancelled"
        for position, mutation in enumerate(self._mutations):
            if position not in self._done:
                self.finish(position, _nothing_ran(mutation, lane, "inconclusive", cause))

    def results(self) -> tuple[MutationRun, ...]:
        """All records, in the order that was asked for."""
        return tuple(self._done[position] for position in range(len(self._mutations)))
