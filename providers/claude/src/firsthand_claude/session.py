"""One run of the CLI from its start to its end, watched line by line."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from firsthand.review.interface import Exit, Failure, Launch, Launcher
from firsthand_claude.events import Expected, Stream

START_LIMIT_S: Final = 60.0
"""By then the CLI must have said what it has set up; it gives its servers 20 s."""


@dataclass(frozen=True, slots=True)
class Run:
    """What was seen, and how it ended."""

    stream: Stream
    ended: Exit


def run_session(launcher: Launcher, launch: Launch, expected: Expected, start_limit_s: float = START_LIMIT_S) -> Run:
    """Start the CLI, read its events as they come, and end it at the first sign that going on is useless.

    Args:
        launcher: the host's; it bounds line, output and time, and ends the whole group.
        launch: what to start.
        expected: what its first event must say.
        start_limit_s: until that event.

    Raises:
        ReviewError: as the launcher says: nothing ran.
    """
    stream = Stream(expected)
    late = threading.Event()
    with launcher.start(launch) as process:

        def give_up() -> None:
            late.set()
            process.stop()

        watch = threading.Timer(start_limit_s, give_up)
        watch.daemon = True
        watch.start()
        try:
            for line in process.lines():
                going_on = stream.take(line)
                if stream.started:
                    watch.cancel()
                if not going_on:
                    process.stop()
                    break
        finally:
            watch.cancel()
        ended = process.wait()
    if late.is_set() and not stream.started and stream.failure is None:
        stream.failure = Failure("timed-out", f"it said nothing of its set-up for {start_limit_s:.0f} s")
    return Run(stream, ended)
