from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from firsthand.errors import PluginError
from firsthand.plugins import OBSERVERS, ObserverHooks, Observers, discover, hookimpl
from firsthand.records import ToolCall


class Recorder:
    def __init__(self) -> None:
        self.seen: list[tuple[object, ...]] = []

    @hookimpl
    def check_started(self, check_id: str, lane: int) -> None:
        self.seen.append(("started", check_id, lane))

    @hookimpl
    def tool_called(self, call: ToolCall) -> None:
        self.seen.append(("called", call.call))

    @hookimpl
    def evidence_sealed(self, path: str, sha256: str) -> None:
        self.seen.append(("sealed", path, sha256))

    @hookimpl
    def round_ended(self, run_id: str, stage: str, round_number: int, status: str, code: str) -> None:
        self.seen.append(("ended", run_id, stage, round_number, status, code))


def raiser(error: BaseException) -> object:
    class Raiser:
        @hookimpl
        def check_started(self) -> None:
            raise error

    return Raiser()


def call() -> ToolCall:
    return ToolCall(
        call=7,
        tool="read_file",
        arguments_sha256="0" * 64,
        arguments="{}",
        result="ok",
        code="",
        result_sha256="0" * 64,
        result_bytes=0,
        runs=(),
        mutation=None,
        duration_ms=1,
    )


def test_observers_hear_what_they_mark_with_the_arguments_they_name() -> None:
    observers, recorder = Observers(), Recorder()
    observers.add(recorder, name="recorder", owner="here 1.0")
    observers.check_started("value", "baseline", 2)
    observers.tool_called(call())
    observers.evidence_sealed("/e.json", "0" * 64)
    observers.round_ended("run", "final", 1, "passed", "")
    assert recorder.seen == [
        ("started", "value", 2),
        ("called", 7),
        ("sealed", "/e.json", "0" * 64),
        ("ended", "run", "final", 1, "passed", ""),
    ]
    assert observers.failures == ()


@pytest.mark.parametrize("error", [ValueError("broken"), SystemExit(0), GeneratorExit(), RecursionError("deep")])
def test_one_that_raises_stops_neither_the_others_nor_the_work(error: BaseException) -> None:
    observers, before, after = Observers(), Recorder(), Recorder()
    observers.add(before, name="before", owner="a 1")
    observers.add(raiser(error), name="raiser", owner="acme-watch 2.0")
    observers.add(after, name="after", owner="c 3")
    observers.check_started("value", "baseline", 0)
    observers.check_started("value", "baseline", 0)
    assert len(before.seen) == len(after.seen) == 2
    (failure,) = observers.failures
    assert (failure.observer, failure.owner, failure.hook) == ("raiser", "acme-watch 2.0", "check_started")
    assert type(error).__name__ in failure.reason
    assert failure.count == 2


def test_the_users_interruption_passes() -> None:
    observers = Observers()
    observers.add(raiser(KeyboardInterrupt()), name="raiser", owner="a 1")
    with pytest.raises(KeyboardInterrupt):
        observers.check_started("value", "baseline", 0)


def test_a_returned_value_is_a_failure() -> None:
    class Answers:
        @hookimpl
        def check_started(self) -> str:
            return "passed"

    class Waits:
        @hookimpl
        async def check_started(self) -> None: ...

    observers = Observers()
    observers.add(Answers(), name="answers", owner="a 1")
    observers.add(Waits(), name="waits", owner="b 1")
    observers.check_started("value", "baseline", 0)
    assert [failure.reason for failure in observers.failures] == [
        "it returned a value (str); observers return nothing",
        "it returned a value (coroutine); observers return nothing",
    ]


def misspelled() -> object:
    class Observer:
        @hookimpl
        def check_begun(self) -> None: ...

    return Observer()


def misspelled_and_optional() -> object:
    class Observer:
        @hookimpl(optionalhook=True)
        def check_begun(self) -> None: ...

    return Observer()


def wrong_argument() -> object:
    class Observer:
        @hookimpl
        def check_started(self, check: str) -> None: ...

    return Observer()


def wrapper() -> object:
    class Observer:
        @hookimpl(wrapper=True)
        def check_started(self) -> Any:
            return (yield)

    return Observer()


def old_wrapper() -> object:
    class Observer:
        @hookimpl(hookwrapper=True)
        def check_started(self) -> Any:
            yield

    return Observer()


def unmarked() -> object:
    class Observer:
        def check_started(self) -> None: ...

    return Observer()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (misspelled, "check_begun"),
        (misspelled_and_optional, "optional"),
        (wrong_argument, "check"),
        (wrapper, "wrapper"),
        (old_wrapper, "wrapper"),
        (unmarked, "marks no method"),
    ],
)
def test_an_observer_that_could_decide_or_would_hear_nothing_is_refused(
    make: Callable[[], object], reason: str
) -> None:
    observers = Observers()
    with pytest.raises(PluginError, match=reason) as caught:
        observers.add(make(), name="acme", owner="acme-watch 1.0")
    assert "'acme' of acme-watch 1.0" in caught.value.message
    observers.check_started("value", "baseline", 0)
    assert observers.failures == ()


def test_every_hook_says_when_it_fires() -> None:
    hooks = {name: value for name, value in vars(ObserverHooks).items() if not name.startswith("_")}
    assert set(hooks) == {
        "check_started",
        "check_finished",
        "mutation_finished",
        "tool_called",
        "evidence_sealed",
        "round_ended",
    }
    for name, hook in hooks.items():
        assert hook.__doc__.startswith("Fires "), name
        assert callable(getattr(Observers, name))


WATCHER = """
import sys
from firsthand.plugins import hookimpl
seen = []
class Watcher:
    @hookimpl
    def check_started(self, check_id):
        seen.append(check_id)
"""


def test_installed_observers_are_loaded_and_a_broken_one_is_recorded(site: Any) -> None:
    good = site.install("good-watch", "good", WATCHER, group=OBSERVERS, attribute="Watcher")
    site.install("exit-watch", "exits", "import sys; sys.exit(0)", group=OBSERVERS, attribute="Watcher")
    site.install(
        "misspelled-watch",
        "misspelled",
        WATCHER.replace("def check_started", "def check_startd"),
        group=OBSERVERS,
        attribute="Watcher",
    )
    observers = Observers()
    observers.add_installed(discover(OBSERVERS).plugins)
    observers.check_started("value", "baseline", 0)
    assert sys.modules[good].seen == ["value"]
    assert {(failure.observer, failure.owner, failure.hook) for failure in observers.failures} == {
        ("exits", "exit-watch 1.0", ""),
        ("misspelled", "misspelled-watch 1.0", ""),
    }


def test_calls_from_many_threads_arrive_one_at_a_time() -> None:
    class Counter:
        def __init__(self) -> None:
            self.inside = 0
            self.most = 0
            self.calls = 0

        @hookimpl
        def check_started(self) -> None:
            self.inside += 1
            self.most = max(self.most, self.inside)
            self.calls += 1
            self.inside -= 1

    counter, observers = Counter(), Observers()
    observers.add(counter, name="counter", owner="a 1")

    def report() -> None:
        for _ in range(200):
            observers.check_started("value", "baseline", 0)

    threads = [threading.Thread(target=report) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (counter.calls, counter.most) == (1600, 1)
