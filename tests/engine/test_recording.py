from __future__ import annotations

from typing import Any

from firsthand.engine.recording import Recording
from firsthand.plugins import Observers, hookimpl
from rules.forge import TABLE, control, mutation_run, run, tool_call


class Watching:
    """Remembers what it was told, and fails each time."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    @hookimpl
    def check_finished(self, run: Any) -> None:
        self.seen.append(("check", run))
        raise RuntimeError("this observer fails")

    @hookimpl
    def mutation_finished(self, run: Any) -> None:
        self.seen.append(("mutation", run))

    @hookimpl
    def tool_called(self, call: Any) -> None:
        self.seen.append(("tool", call))


def test_everything_is_kept_in_order_and_told_whatever_an_observer_does() -> None:
    watching = Watching()
    observers = Observers()
    observers.add(watching, name="watching", owner="test")
    recording = Recording(observers)
    first, second = run(1), run(2, "restored")
    recording.check_run(first, TABLE)
    recording.check_run(second, None)
    recording.control_run(control())
    recording.mutation_run(mutation_run())
    recording.tool_call(tool_call(1))
    recording.voided("review_verification_copy_drift")
    assert recording.runs == [first, second]
    assert recording.controls == [control()]
    assert recording.mutations == [mutation_run()]
    assert recording.tool_calls == [tool_call(1)]
    assert recording.voids == ["review_verification_copy_drift"]
    assert [kind for kind, _ in watching.seen] == ["check", "check", "mutation", "tool"]
    (failure,) = observers.failures
    assert (failure.hook, failure.count) == ("check_finished", 2)
    assert "this observer fails" in failure.reason


def test_one_table_of_names_however_many_runs_refer_to_it() -> None:
    recording = Recording(Observers())
    for number in range(1, 4):
        recording.check_run(run(number), TABLE)
    assert recording.names == {TABLE.digest: TABLE}


def test_runs_are_numbered_from_one_without_a_gap() -> None:
    recording = Recording(Observers())
    assert [recording.next_run() for _ in range(3)] == [1, 2, 3]
