"""Control mutations of a session: each file and check once, whichever lane needs it first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from firsthand.canonical import sha256_hex
from firsthand.checks import Lane, PlacedCheck, Recorder, Standing, run_check
from firsthand.errors import FirsthandError
from firsthand.isolation.interface import IsolationError, RunCancelledError
from firsthand.mutation.control import control_of
from firsthand.records import CheckRun, ControlRun
from firsthand.rules import mutated_deadline_ms


class Controls:
    """Tries each control once and keeps its run. Shared by all lanes of a session, across tool calls. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tried: dict[tuple[str, str], Future[CheckRun | None]] = {}

    def run_of(
        self,
        lane: Lane,
        check: PlacedCheck,
        path: str,
        original: bytes,
        recorder: Recorder,
        cancelled: Callable[[], bool],
    ) -> CheckRun | None:
        """The control's run for this file and check; tried in this lane when no lane has tried it yet.

        Waits for the lane that is trying it.

        Returns:
            None when it could not be tried: the file could not be rewritten, or its lane was broken off.

        Raises:
            RunCancelledError: it was cancelled while it ran; the next one that needs it tries it again.
        """
        key = (check.id, path)
        with self._lock:
            tried = self._tried.get(key)
            mine = tried is None
            if tried is None:
                tried = self._tried[key] = Future()
        if not mine:
            return tried.result()
        run: CheckRun | None = None
        try:
            run = _try_control(lane, check, path, original, recorder, cancelled)
        except RunCancelledError:
            with self._lock:
                del self._tried[key]
            raise
        finally:
            tried.set_result(run)
        return run


def _try_control(
    lane: Lane, check: PlacedCheck, path: str, original: bytes, recorder: Recorder, cancelled: Callable[[], bool]
) -> CheckRun | None:
    broken = control_of(path, original)
    run: CheckRun | None = None
    standing = Standing(None, None)
    try:
        try:
            lane.put(path, broken)
            deadline_ms = mutated_deadline_ms(check.timeout_ms, recorder.slowest_ms(lane.number, check.id))
            run = run_check(lane, check, recorder, purpose="control", deadline_ms=deadline_ms, cancelled=cancelled)
        except IsolationError:
            run = None
        if lane.spoiled is None:
            standing = lane.restore(path)
    except RunCancelledError:
        # Not tried, so not entered: the series ends here, and the next command of the lane finds the frozen bytes.
        if lane.spoiled is None:
            lane.restore(path)
        raise
    except FirsthandError:
        # Whether the lane still stands is for its next command to say.
        standing = Standing(None, None)
    recorder.control_run(
        ControlRun(
            check_id=check.id,
            path=path,
            run=run.run if run is not None else None,
            mutated_sha256=sha256_hex(broken) if run is not None else None,
            restored_sha256=standing.sha256,
        )
    )
    return run
