"""Progress of long work, on standard error: one line that is written over on a terminal, one line each in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from firsthand.cli.text import one_line
from firsthand.plugins import OBSERVERS, Observers, discover, hookimpl
from firsthand.records import CheckRun, MutationRun, ProbeResult, RunPurpose


class ProgressLine:
    """An observer that says what is going on. Quiet when the answer is JSON."""

    def __init__(self, *, quiet: bool = False, total: int = 0) -> None:
        self._quiet = quiet
        self._total = total
        self._done = 0
        self._probes = 0
        self._open = False
        self._live = sys.stderr.isatty()
        self._begun = time.monotonic()

    def probe(self, result: ProbeResult) -> None:
        """A probe of the battery ended."""
        self._probes += 1
        self._say(f"battery: {self._probes} probes, {result.id} {result.result}", passing=True)

    @hookimpl
    def check_started(self, check_id: str, purpose: RunPurpose) -> None:
        """See `ObserverHooks`."""
        self._say(f"check {one_line(check_id)}: {purpose} runs", passing=True)

    @hookimpl
    def check_finished(self, run: CheckRun) -> None:
        """See `ObserverHooks`."""
        outcome = run.command.outcome
        if self._total or run.purpose != "baseline":
            self._say(f"run {run.run}: check {run.check_id} {run.purpose} {run.status}", passing=True)
        else:
            self._say(f"check {run.check_id}: {run.status} in {outcome.duration_ms} ms")

    @hookimpl
    def mutation_finished(self, run: MutationRun) -> None:
        """See `ObserverHooks`."""
        self._done += 1
        took = time.monotonic() - self._begun
        where = one_line(run.mutation.path, 80)
        of_all = f"/{self._total}" if self._total else ""
        self._say(f"mutation {self._done}{of_all}: {run.verdict} ({run.cause}) in {where}, {took:.1f} s so far")

    def close(self) -> None:
        """Take the line away."""
        if self._open:
            sys.stderr.write("\r\x1b[K")
            self._open = False

    def _say(self, text: str, *, passing: bool = False) -> None:
        if self._quiet or (passing and not self._live):
            return
        if self._live:
            sys.stderr.write("\r\x1b[K" + text + ("" if passing else "\n"))
            self._open = passing
        else:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()


@contextmanager
def watched(*, quiet: bool, total: int = 0) -> Iterator[tuple[ProgressLine, Observers]]:
    """A progress line and all installed observers, the line first, around one piece of long work.

    The line is taken away at the end in any case. After work that came to its end, observers that failed are named;
    they never change a result.
    """
    line = ProgressLine(quiet=quiet, total=total)
    found = Observers()
    found.add(line, name="progress", owner="firsthand-core")
    found.add_installed(discover(OBSERVERS).plugins)
    try:
        yield line, found
    finally:
        line.close()
    for failure in found.failures:
        sys.stderr.write(f"observer {failure.observer} ({failure.owner}) failed: {one_line(failure.reason)}\n")
