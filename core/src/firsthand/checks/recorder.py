"""Entering runs from several lanes into one order."""

from __future__ import annotations

import threading
from collections.abc import Callable

from firsthand.records import CheckRun, ControlRun, MutationRun, RecordSink, TestNames, ToolCall
from firsthand.rules import is_unmodified


class Recorder:
    """A sink that several lanes may write to: one record at a time, and a number is only taken by a run that ended.

    So the numbers have no gap even when a lane is broken off. Not a sink itself: a run's number and its record are
    taken in one step here.
    """

    def __init__(self, sink: RecordSink) -> None:
        self._sink = sink
        self._lock = threading.Lock()
        self._names: dict[str, TestNames] = {}
        self._slowest_ms: dict[tuple[int, str], int] = {}

    @property
    def names(self) -> dict[str, TestNames]:
        """Every table of test names that the runs so far refer to, by digest."""
        with self._lock:
            return dict(self._names)

    def check_run(self, build: Callable[[int], CheckRun], names: TestNames | None) -> CheckRun:
        """Number a run that has just ended and enter it."""
        with self._lock:
            if names is not None:
                self._names.setdefault(names.digest, names)
            run = build(self._sink.next_run())
            self._sink.check_run(run, names)
            if is_unmodified(run):
                key = (run.lane, run.check_id)
                self._slowest_ms[key] = max(self._slowest_ms.get(key, 0), run.command.outcome.duration_ms)
        return run

    def slowest_ms(self, lane: int, check_id: str) -> int:
        """The longest run of a check on unmodified files in this lane so far; deadlines of mutated runs rest on it."""
        with self._lock:
            return self._slowest_ms.get((lane, check_id), 0)

    def control_run(self, run: ControlRun) -> None:
        """Enter a control."""
        with self._lock:
            self._sink.control_run(run)

    def mutation_run(self, run: MutationRun) -> None:
        """Enter a mutation that has its verdict."""
        with self._lock:
            self._sink.mutation_run(run)

    def tool_call(self, call: ToolCall) -> None:
        """Enter a reviewer's call that was answered."""
        with self._lock:
            self._sink.tool_call(call)

    def voided(self, code: str) -> None:
        """Enter what voids the records before it."""
        with self._lock:
            self._sink.voided(code)
