"""Measuring two sides turn by turn."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

Measured: TypeAlias = Callable[[], float]
"""Does the work once and gives the seconds that count; what it prepares or clears away is not among them."""


def timed(work: Callable[[], object]) -> Measured:
    """The whole of `work` counts."""

    def measure() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return measure


def in_turns(sides: Sequence[Measured], rounds: int, *, warm_up: int = 1) -> tuple[tuple[float, ...], ...]:
    """Measure all sides `rounds` times, one after the other in each round, after rounds that do not count.

    Every second round goes backwards (A B B A), so that no side always comes after the same one. The collector runs
    between measurements and not in them.

    Returns:
        For each side its seconds, in the order of the rounds.
    """
    for _ in range(warm_up):
        for side in sides:
            side()
    found: list[list[float]] = [[] for _ in sides]
    order = list(range(len(sides)))
    for number in range(rounds):
        for place in order if number % 2 == 0 else reversed(order):
            gc.collect()
            gc.disable()
            try:
                found[place].append(sides[place]())
            finally:
                gc.enable()
    return tuple(tuple(values) for values in found)
