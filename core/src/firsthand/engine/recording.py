"""The sink of one session: keeps every record in order and tells the observers."""

from __future__ import annotations

from collections.abc import Callable

from firsthand.plugins import Observers
from firsthand.records import CheckRun, ControlRun, MutationRun, TestNames, ToolCall


class Recording:
    """Implements `RecordSink`; written to by one caller at a time (`checks.Recorder` sees to that)."""

    def __init__(self, observers: Observers) -> None:
        self.on_call: Callable[[ToolCall], None] = _nothing
        """Told each tool call before the observers are: a round enters its head in the ledger."""
        self.runs: list[CheckRun] = []
        self.names: dict[str, TestNames] = {}
        self.controls: list[ControlRun] = []
        self.mutations: list[MutationRun] = []
        self.tool_calls: list[ToolCall] = []
        self.voids: list[str] = []
        self._observers = observers
        self._last_run = 0

    def next_run(self) -> int:
        """See `RecordSink`."""
        self._last_run += 1
        return self._last_run

    def check_run(self, run: CheckRun, names: TestNames | None) -> None:
        """See `RecordSink`."""
        self.runs.append(run)
        if names is not None:
            self.names.setdefault(names.digest, names)
        self._observers.check_finished(run)

    def control_run(self, run: ControlRun) -> None:
        """See `RecordSink`."""
        self.controls.append(run)

    def mutation_run(self, run: MutationRun) -> None:
        """See `RecordSink`."""
        self.mutations.append(run)
        self._observers.mutation_finished(run)

    def tool_call(self, call: ToolCall) -> None:
        """See `RecordSink`."""
        self.tool_calls.append(call)
        self.on_call(call)
        self._observers.tool_called(call)

    def voided(self, code: str) -> None:
        """See `RecordSink`."""
        self.voids.append(code)


def _nothing(_call: ToolCall) -> None:
    """What is told where nobody keeps heads."""
