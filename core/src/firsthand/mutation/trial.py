"""One mutation in one lane: green, replace, the same check, exact restore, green."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from firsthand.canonical import sha256_hex
from firsthand.checks import CleanupUnknownError, Lane, PlacedCheck, Recorder, Standing, run_check
from firsthand.errors import FirsthandError
from firsthand.isolation.interface import IsolationError, RunCancelledError
from firsthand.mutation.controls import Controls
from firsthand.mutation.replacement import Replacement, replace_once
from firsthand.records import CheckRun, ManifestEntry, Mutation, MutationCause, MutationRun
from firsthand.rules import Restoration, control_shows, mutated_deadline_ms, mutation_verdict
from firsthand.snapshot import CopyDriftError, Snapshot


@dataclass
class _Course:
    """What has happened so far in one trial; becomes the record however the trial ends."""

    before: CheckRun | None = None
    control: CheckRun | None = None
    mutated: CheckRun | None = None
    after: CheckRun | None = None
    deadline_ms: int | None = None
    applied: bool = False
    standing: Standing = field(default_factory=lambda: Standing(None, None))
    interruption: MutationCause | None = None


class Trials:
    """The trials of one series in one lane. The green run after one is the green run before the next."""

    def __init__(
        self,
        lane: Lane,
        snapshot: Snapshot,
        controls: Controls,
        recorder: Recorder,
        reason_to_stop: Callable[[], MutationCause | None],
    ) -> None:
        self._lane = lane
        self._snapshot = snapshot
        self._controls = controls
        self._recorder = recorder
        self._reason_to_stop = reason_to_stop
        self._latest: dict[str, CheckRun] = {}

    def run(self, mutation: Mutation, check: PlacedCheck, enter: Callable[[MutationRun], None]) -> None:
        """Try one mutation that applies, and give its record to `enter`, once, however the trial ends.

        Never raises for what happens to the lane: that is a cause of the record, and `lane.spoiled`. Anything else (an
        interrupt) is recorded as cancelled and passed on with the lane spoiled, since the mutation may still stand in
        its copy, which is discarded.

        Raises:
            KeyError: the path is not registered as present.
            ValueError: the mutation does not apply.
            CopyDriftError: the pristine copy is not what was frozen.
        """
        course = _Course()
        entry = self._snapshot.manifest.entry(mutation.path)
        if entry is None:
            raise KeyError(mutation.path)
        original = self._snapshot.read(mutation.path)
        replacement = replace_once(original, mutation)
        if not isinstance(replacement, Replacement):
            raise ValueError(f"the mutation does not apply: {replacement}")  # noqa: TRY004 - a value, not a type
        try:
            self._run(course, mutation, check, original, replacement)
        except FirsthandError as error:
            course.interruption = interruption_of(error)
        except BaseException:
            self._lane.break_off()
            enter(self._record(course, mutation, entry, replacement))
            raise
        enter(self._record(course, mutation, entry, replacement))

    def _run(
        self, course: _Course, mutation: Mutation, check: PlacedCheck, original: bytes, replacement: Replacement
    ) -> None:
        # 1. Green on the frozen bytes, in this lane and this series.
        course.before = self._green(check)
        if course.before.status != "passed" or self._stop(course):
            return
        # 2. The file is what the check loads.
        course.control = self._controls.run_of(
            self._lane, check, mutation.path, original, self._recorder, self._stopping
        )
        if control_shows(course.control) is not None or self._stop(course):
            return
        # 3. Replace, and run the same check. Whatever comes of it, the bytes go back.
        course.deadline_ms = mutated_deadline_ms(
            check.timeout_ms, self._recorder.slowest_ms(self._lane.number, check.id)
        )
        try:
            self._lane.put(mutation.path, replacement.data)
            course.applied = True
            course.mutated = run_check(
                self._lane,
                check,
                self._recorder,
                purpose="mutated",
                deadline_ms=course.deadline_ms,
                cancelled=self._stopping,
            )
        except (IsolationError, RunCancelledError) as error:
            course.interruption = interruption_of(error)
        # 4. Exact bytes and mode; what stands is read back by the host.
        course.standing = self._lane.restore(mutation.path)
        if course.interruption is not None or self._stop(course):
            return
        # 5. Green again.
        course.after = self._latest[check.id] = run_check(
            self._lane, check, self._recorder, purpose="restored", cancelled=self._stopping
        )

    def _green(self, check: PlacedCheck) -> CheckRun:
        if check.id not in self._latest:
            self._latest[check.id] = run_check(
                self._lane, check, self._recorder, purpose="baseline", cancelled=self._stopping
            )
        if self._lane.spoiled is not None:
            raise self._lane.spoiled
        return self._latest[check.id]

    def _stopping(self) -> bool:
        return self._reason_to_stop() is not None

    def _stop(self, course: _Course) -> bool:
        """Whether to go no further: the lane is spoiled (raised), or the series stops (a cause)."""
        if self._lane.spoiled is not None:
            raise self._lane.spoiled
        course.interruption = self._reason_to_stop()
        return course.interruption is not None

    def _record(
        self, course: _Course, mutation: Mutation, entry: ManifestEntry, replacement: Replacement
    ) -> MutationRun:
        spoiled = self._lane.spoiled
        if spoiled is not None:
            course.interruption = interruption_of(spoiled)
        verdict, cause = mutation_verdict(
            before=course.before,
            mutated=course.mutated,
            after=course.after,
            control=course.control,
            restoration=Restoration(entry.sha256, entry.mode, course.standing.sha256, course.standing.mode),
            names=self._recorder.names,
            interruption=course.interruption,
        )
        return MutationRun(
            mutation=mutation,
            lane=self._lane.number,
            before=_number(course.before),
            mutated=_number(course.mutated),
            after=_number(course.after),
            offset_bytes=replacement.offset_bytes,
            original_sha256=entry.sha256,
            mutated_sha256=sha256_hex(replacement.data) if course.applied else None,
            restored_sha256=course.standing.sha256,
            restored_mode=course.standing.mode,
            deadline_ms=course.deadline_ms,
            verdict=verdict,
            cause=cause,
        )


def interruption_of(error: FirsthandError) -> MutationCause:
    """The cause that a mutation is recorded with when this ended its lane or kept it from running."""
    match error:
        case CopyDriftError():
            return "copy-drift"
        case CleanupUnknownError():
            return "cleanup-unknown"
        case IsolationError():
            return "sandbox-failed"
        case _:
            return "cancelled"


def _number(run: CheckRun | None) -> int | None:
    return run.run if run is not None else None
