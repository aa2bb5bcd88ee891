"""The desk: does what the three tools promise, one command at a time, and nothing else.

Reads and commands may come from different threads; commands come from one. Once the frozen bytes are found changed, a
copy drifted or a command's end is unknown, every later call is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from firsthand.checks import Ground, Lane, LaneInterruptedError, PlacedCheck, Recorder, run_check
from firsthand.errors import FirsthandError
from firsthand.mutation import Controls, Registered, run_series
from firsthand.records import (
    CheckRun,
    ControlRun,
    ManifestEntry,
    Mutation,
    MutationRun,
    RecordSink,
    TestNames,
    ToolCall,
    ToolResult,
)
from firsthand.review.coverage import Delivered
from firsthand.review.paging import PageError, page_of
from firsthand.review.server.arguments import ArgumentError, check_fields, offset_field, text_field
from firsthand.review.server.interrupting import CallCancelledError, Interrupt, interruptible
from firsthand.review.server.showing import as_text, shown_error, shown_mutation, shown_run
from firsthand.snapshot import CopyDriftError

USAGE: Final = "usage"
"""Code of a call that asked for something that there is not."""
CANCELLED: Final = "cancelled"
"""Code of a call that its caller took back."""


@dataclass(frozen=True, slots=True)
class Page:
    """What a read delivers, once its reply has gone out."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool answers, and the records that it caused.

    Attributes:
        result: as the record names it.
        code: empty exactly with `ok`.
        text: JSON for the model.
        runs: numbers of the check runs.
        mutation: index of the mutation.
        page: what is delivered by it.
    """

    result: ToolResult
    code: str
    text: str
    runs: tuple[int, ...] = ()
    mutation: int | None = None
    page: Page | None = None


class KeepingSink:
    """A `RecordSink` that passes everything on and keeps what belongs to the call that is being served."""

    def __init__(self, sink: RecordSink) -> None:
        self._sink = sink
        self._mutations = 0
        self._tables: set[str] = set()
        self.runs: list[CheckRun] = []
        self.mutation: int | None = None

    def begin(self) -> None:
        """A call begins; what the one before caused is forgotten."""
        self.runs = []
        self.mutation = None

    def next_run(self) -> int:
        """See `RecordSink`."""
        return self._sink.next_run()

    def check_run(self, run: CheckRun, names: TestNames | None) -> None:
        """See `RecordSink`."""
        self.runs.append(run)
        self._sink.check_run(run, names)

    def control_run(self, run: ControlRun) -> None:
        """See `RecordSink`."""
        self._sink.control_run(run)

    def mutation_run(self, run: MutationRun) -> None:
        """See `RecordSink`."""
        self.mutation = self._mutations
        self._mutations += 1
        self._sink.mutation_run(run)

    def tool_call(self, call: ToolCall) -> None:
        """See `RecordSink`."""
        self._sink.tool_call(call)

    def voided(self, code: str) -> None:
        """See `RecordSink`."""
        self._sink.voided(code)


class Desk:
    """Serves the calls of one review; a context manager that gives its working copy back.

    Args:
        ground: what lanes stand on.
        registered: checks, mutation paths and frozen files.
        sink: gets every record. In the course of a review nothing else writes to it.

    Attributes:
        interrupt: breaks the running command off.
        recorder: the one way into the sink.
        delivered: what was read; written to by whoever sends the replies.
    """

    def __init__(self, ground: Ground, registered: Registered, sink: RecordSink) -> None:
        self.interrupt = Interrupt()
        self._ground = interruptible(ground, self.interrupt)
        self._registered = registered
        self._sink = KeepingSink(sink)
        self.recorder = Recorder(self._sink)
        self.delivered = Delivered(registered.snapshot.manifest)
        self._controls = Controls()
        self._stack = ExitStack()
        self._lane: Lane | None = None
        self._lanes = 0
        self._lock = threading.Lock()
        self._spoiled: FirsthandError | None = None

    @property
    def spoiled(self) -> FirsthandError | None:
        """Why no call is served any more; None while they are."""
        return self._spoiled

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the working copy back.

        Raises:
            RemovalError: it resisted.
        """
        try:
            self._stack.close()
        finally:
            self.interrupt.close()

    def read_file(self, arguments: object) -> Reply:
        """One page of a frozen file. Never raises."""
        refused = self._refused()
        if refused is not None:
            return refused
        try:
            given = check_fields(arguments, ["path"], ["offset"])
            path, offset = text_field(given, "path"), offset_field(given)
            entry = self._present(path)
            self._registered.snapshot.check_pristine()
            page = page_of(self._registered.snapshot.read(path), offset)
        except (ArgumentError, PageError) as error:
            return Reply("error", USAGE, shown_error(str(error)))
        except FirsthandError as error:
            return self._spoil(error)
        text = as_text(
            {
                "content": page.content,
                "totalBytes": entry.size,
                "nextOffset": page.next_offset,
                "sha256": entry.sha256,
            }
        )
        return Reply("ok", "", text, page=Page(path, offset, page.end))

    def run_check(self, arguments: object) -> Reply:
        """One run of a check on the unmodified files. Never raises for what it meets."""
        refused = self._refused()
        if refused is not None:
            return refused
        try:
            given = check_fields(arguments, ["checkId"])
            check = self._check(text_field(given, "checkId"))
        except ArgumentError as error:
            return Reply("error", USAGE, shown_error(str(error)))
        self._sink.begin()
        try:
            self._registered.snapshot.check_pristine()
            lane = self._ready()
            run = run_check(lane, check, self.recorder)
        except CallCancelledError:
            return self._cancelled()
        except FirsthandError as error:
            return self._spoil(error)
        finally:
            self._after_command()
        return Reply("ok", "", shown_run(run), runs=(run.run,))

    def mutate_check(self, arguments: object) -> Reply:
        """One mutation with all its runs. Never raises for what it meets."""
        refused = self._refused()
        if refused is not None:
            return refused
        try:
            given = check_fields(arguments, ["checkId", "path", "old", "new"])
            fields = {name: text_field(given, name) for name in ("checkId", "path", "old", "new")}
        except ArgumentError as error:
            return Reply("error", USAGE, shown_error(str(error)))
        mutation = Mutation(check=fields["checkId"], path=fields["path"], old=fields["old"], new=fields["new"])
        self._sink.begin()
        try:
            self._registered.snapshot.check_pristine()
            (result,) = run_series(
                [mutation],
                self._registered,
                [self._ready()],
                controls=self._controls,
                recorder=self.recorder,
                cancelled=lambda: self.interrupt.is_set,
            )
        except CallCancelledError:
            return self._cancelled()
        except FirsthandError as error:
            return self._spoil(error)
        finally:
            self._after_command()
        if result.cause == "cancelled":
            return self._cancelled()
        runs = tuple(self._sink.runs)
        return Reply(
            "ok",
            "",
            shown_mutation(result, runs),
            runs=tuple(run.run for run in runs),
            mutation=self._sink.mutation,
        )

    def _present(self, path: str) -> ManifestEntry:
        entry = self._registered.snapshot.manifest.entry(path)
        if entry is None:
            raise ArgumentError(f"{path[:200]!r} is not a registered path")
        if entry.state == "missing":
            raise ArgumentError(f"{path} is registered as missing: nothing stands there")
        return entry

    def _check(self, check_id: str) -> PlacedCheck:
        checks: Mapping[str, PlacedCheck] = self._registered.checks
        check = checks.get(check_id)
        if check is None:
            raise ArgumentError(f"{check_id[:200]!r} is not a registered check; there are {', '.join(sorted(checks))}")
        return check

    def _ready(self) -> Lane:
        """The lane for the next command; a new one after one that was broken off."""
        if self._lane is None:
            self._lane = self._stack.enter_context(Lane(self._ground, self._lanes))
            self._lanes += 1
        return self._lane

    def _after_command(self) -> None:
        lane = self._lane
        if lane is None or lane.spoiled is None:
            return
        if not isinstance(lane.spoiled, LaneInterruptedError):
            self._end_with(lane.spoiled)
            return
        # The copy may hold anything: it goes, and the next command gets another.
        self._lane = None
        try:
            self._stack.close()
        except FirsthandError as error:
            self._end_with(error)

    def _cancelled(self) -> Reply:
        return Reply(
            "cancelled",
            CANCELLED,
            shown_error("the call was cancelled"),
            runs=tuple(run.run for run in self._sink.runs),
            mutation=self._sink.mutation,
        )

    def _end_with(self, error: FirsthandError) -> None:
        with self._lock:
            self._spoiled = self._spoiled or error

    def _refused(self) -> Reply | None:
        spoiled = self._spoiled
        if spoiled is None:
            return None
        return Reply("refused", spoiled.code, shown_error(f"no call is served any more: {spoiled.message}"))

    def _spoil(self, error: FirsthandError) -> Reply:
        """The call met something that ends the session, or that only this call suffers from."""
        if isinstance(error, CopyDriftError):
            with self._lock:
                first = self._spoiled is None
                self._spoiled = self._spoiled or error
            # A lane's drift was entered by the lane; what is left is the pristine copy's.
            if first and (self._lane is None or self._lane.spoiled is not error):
                self.recorder.voided(error.code)
        return Reply(
            "error",
            error.code,
            shown_error(error.message),
            runs=tuple(run.run for run in self._sink.runs),
            mutation=self._sink.mutation,
        )
