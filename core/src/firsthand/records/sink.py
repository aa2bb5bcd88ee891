"""The way out of the rooms that measure: they write records here and never learn what becomes of them."""

from __future__ import annotations

from typing import Protocol

from firsthand.records.check import CheckRun, TestNames
from firsthand.records.mutation import ControlRun, MutationRun
from firsthand.records.review import ToolCall


class RecordSink(Protocol):
    """Takes each record once, in order of time."""

    def next_run(self) -> int:
        """The number that the next check run gets; each call gives another one, from 1."""

    def check_run(self, run: CheckRun, names: TestNames | None) -> None:
        """One run ended; `names` is what `run.tests.names` is the digest of."""

    def control_run(self, run: ControlRun) -> None:
        """One control mutation was tried."""

    def mutation_run(self, run: MutationRun) -> None:
        """One mutation has its verdict."""

    def tool_call(self, call: ToolCall) -> None:
        """One call of the reviewer was answered."""

    def voided(self, code: str) -> None:
        """Something voids what was recorded before it."""
