from __future__ import annotations

import gc

from benchmarks.harness.clock import Measured, in_turns, timed


def recording(name: str, calls: list[str], value: float) -> Measured:
    def measure() -> float:
        calls.append(name)
        return value

    return measure


def test_sides_take_turns_and_the_order_turns_with_each_round() -> None:
    calls: list[str] = []
    found = in_turns((recording("a", calls, 1.0), recording("b", calls, 2.0)), 3, warm_up=1)
    assert "".join(calls) == "ab" + "ab" + "ba" + "ab"
    assert found == ((1.0, 1.0, 1.0), (2.0, 2.0, 2.0))


def test_the_collector_rests_while_a_side_is_measured_and_works_again_afterwards() -> None:
    seen: list[bool] = []

    def measure() -> float:
        seen.append(gc.isenabled())
        return 0.0

    in_turns((measure,), 2, warm_up=0)
    assert seen == [False, False]
    assert gc.isenabled()


def test_the_collector_works_again_after_a_side_that_fails() -> None:
    def measure() -> float:
        raise RuntimeError

    try:
        in_turns((measure,), 1, warm_up=0)
    except RuntimeError:
        assert gc.isenabled()
    else:
        raise AssertionError


def test_the_whole_work_counts() -> None:
    done: list[int] = []
    assert timed(lambda: done.append(1))() >= 0.0
    assert done == [1]
