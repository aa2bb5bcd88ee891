"""Who waits for whom: commands queue behind each other, reads wait for no command, and a call can be taken back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

from firsthand.review.server.desk import CANCELLED, Desk, Reply
from firsthand.review.server.showing import shown_error

READS: Final = frozenset({"read_file"})
"""Tools that run no command."""


class Errand:
    """One call on its way. Thread-safe.

    Attributes:
        future: done when the call is over, with its reply; never raises but for a fault of ours.
    """

    def __init__(self, work: Callable[[], Reply], desk: Desk, *, is_command: bool) -> None:
        self._work = work
        self._desk = desk
        self._is_command = is_command
        self._lock = threading.Lock()
        self._cancelled = False
        self._running = False
        self.future: Future[Reply] = Future()

    def run(self) -> None:
        """Serve the call, in the thread of its queue; a call that was taken back by then does nothing."""
        with self._lock:
            if self._cancelled:
                self.future.set_result(Reply("cancelled", CANCELLED, shown_error("the call was cancelled")))
                return
            self._running = True
            if self._is_command:
                self._desk.interrupt.clear()
        try:
            reply = self._work()
        except BaseException as error:  # noqa: BLE001 - it is passed on, to whoever waits for the reply
            self.future.set_exception(error)
            return
        finally:
            taken_back = self._end()
        if taken_back and reply.result != "cancelled":
            # What ran counts, and nobody sees the answer.
            reply = replace(reply, result="cancelled", code=CANCELLED, page=None)
        self.future.set_result(reply)

    def _end(self) -> bool:
        """Nothing of it runs any more; whether it was taken back meanwhile."""
        with self._lock:
            self._running = False
            return self._cancelled

    def cancel(self) -> None:
        """Take the call back: kill its command if one runs. Returns at once; the future is done soon after."""
        with self._lock:
            self._cancelled = True
            if self._running and self._is_command:
                self._desk.interrupt.set()


class Queues:
    """One queue for commands and one for reads, a thread each; a context manager that takes back what is left."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._commands = ThreadPoolExecutor(1, thread_name_prefix="firsthand-commands")
        self._reads = ThreadPoolExecutor(1, thread_name_prefix="firsthand-reads")
        self._lock = threading.Lock()
        self._open: set[Errand] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take back every call and wait until the last command is gone."""
        self.cancel_all()
        self._commands.shutdown()
        self._reads.shutdown()

    def send(self, tool: str, arguments: object) -> Errand:
        """Queue a call of a tool that there is.

        Raises:
            KeyError: there is no such tool.
        """
        desk = self._desk
        work = {"read_file": desk.read_file, "run_check": desk.run_check, "mutate_check": desk.mutate_check}[tool]
        errand = Errand(lambda: work(arguments), self._desk, is_command=tool not in READS)
        with self._lock:
            self._open.add(errand)
        errand.future.add_done_callback(lambda _: self._forget(errand))
        (self._reads if tool in READS else self._commands).submit(errand.run)
        return errand

    def cancel_all(self) -> None:
        """Take back every call that is under way."""
        with self._lock:
            waiting = list(self._open)
        for errand in waiting:
            errand.cancel()

    def _forget(self, errand: Errand) -> None:
        with self._lock:
            self._open.discard(errand)
