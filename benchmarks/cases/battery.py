"""What it costs to find a backend that holds: the whole battery, and its remembered result."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count

from benchmarks.harness.bench import Bench
from benchmarks.harness.clock import in_turns, timed
from benchmarks.harness.row import CannotRunError, Row, Samples

from firsthand.engine.backends import select_backend
from firsthand.isolation.interface import IsolationError
from firsthand.residues import Session, StateDirectory

_WARM_LIMIT_MS = 5.0


def battery(bench: Bench) -> Iterator[Row]:
    """Select a backend with an empty cache and with a full one."""
    numbers = count()

    def cold() -> float:
        state = StateDirectory.open(bench.scratch / f"state-{next(numbers)}")
        with Session.open(state) as session:
            start = time.perf_counter()
            selected = select_backend(state, session)
            end = time.perf_counter()
        if selected.cached:
            raise CannotRunError("an empty state directory knew a battery")
        return end - start

    try:
        (cold_s,) = in_turns((cold,), bench.times(3), warm_up=0)
    except IsolationError as error:
        raise CannotRunError(error.message) from error
    state = StateDirectory.open(bench.state)
    with Session.open(state) as session:
        select_backend(state, session)

        def warm() -> None:
            if not select_backend(state, session).cached:
                raise CannotRunError("the battery was not remembered")

        (warm_s,) = in_turns((timed(warm),), bench.times(50), warm_up=3)
    yield Row(
        about="choosing a backend after the first battery",
        own=Samples.of_seconds("select", warm_s),
        other=None,
        figure="own",
        limit=_WARM_LIMIT_MS,
        note="entry points read afresh, launcher asked for its version and hashed, battery's sources and report hashed",
    )
    yield Row(
        about="choosing a backend for the first time",
        own=Samples.of_seconds("select", cold_s),
        other=None,
        figure="own",
        note="every probe with its controls, live; once for each boot, kernel limit, launcher and profile",
    )
