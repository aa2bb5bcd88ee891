"""The tool server's life: a thread with an event loop of its own, from its socket to the last command's end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from firsthand.records import ToolCall
from firsthand.review import relay
from firsthand.review.interface import Endpoint, ReviewError
from firsthand.review.server.desk import Desk
from firsthand.review.server.door import admit, open_door, welcome
from firsthand.review.server.log import CallLog
from firsthand.review.server.queueing import Queues
from firsthand.review.tools import tool_schemas

_JOIN_S: Final = 30.0


class ToolServer:
    """Serves `cm_review` to the first relay that connects; a context manager. One for each dispatch.

    Args:
        folder: an empty private folder (0700) of the host; the socket and the token's file are made in it.
        desk: serves the calls; None for a server that shows its tools and refuses every call, as a preflight needs it.
    """

    def __init__(self, folder: Path, desk: Desk | None) -> None:
        self._folder = folder
        self._desk = desk
        self._log = CallLog(desk.recorder) if desk is not None else None
        self._connections = 0
        self._taken = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._work, name="firsthand-server", daemon=True)
        self._failure: BaseException | None = None

    @property
    def instances(self) -> int:
        """How many connections there were, refused ones included; anything but one voids a review."""
        return self._connections

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Every answered call so far, in order of arrival; complete once the server has stopped."""
        return self._log.records if self._log is not None else ()

    @property
    def arrived(self) -> int:
        """How many calls there were; more than `calls` when there were too many to record, or one was not answered."""
        return self._log.arrived if self._log is not None else 0

    @property
    def endpoint(self) -> Endpoint:
        """What a provider gives its program to start."""
        script = Path(relay.__file__).resolve()
        return Endpoint(
            argv=(sys.executable, "-I", "-S", str(script), str(self._folder)),
            environment={},
            reads=(script, self._folder),
            tools=tool_schemas(),
        )

    def __enter__(self) -> Self:
        """Open the socket and begin to serve.

        Raises:
            StateError: the socket can't be made.
        """
        self._listener, self._token = open_door(self._folder)
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """See `stop`; a fault of the server is raised here unless another error is under way."""
        self.stop()
        if self._failure is not None and error is None:
            raise self._failure

    def stop(self) -> None:
        """Cancel what is under way, wait until the last command is gone, and close the socket; safe to call again.

        Raises:
            ReviewError: a command did not end in 30 s; what it holds is not known.
        """
        loop, stopped = self._loop, self._stopped
        if loop is not None and stopped is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(stopped.set)
        self._thread.join(_JOIN_S)
        self._listener.close()
        if self._thread.is_alive():
            raise ReviewError(
                "a command of the reviewer could not be ended",
                where=str(self._folder),
                next_step="look for processes of the session, then run `firsthand residues --clean`",
                code="review_verification_cleanup_unknown",
            )

    def _work(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - it is passed on where the server is closed
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._connections += 1
            task = asyncio.ensure_future(self._connection(reader, writer, queues))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        with contextlib.ExitStack() as stack:
            queues = stack.enter_context(Queues(self._desk)) if self._desk is not None else None
            server = await asyncio.start_unix_server(connected, sock=self._listener)
            self._ready.set()
            # Slow to import, and not needed before a relay is there: that takes a program longer to start.
            from firsthand.review.server import protocol, transport  # noqa: F401, PLC0415

            try:
                await self._stopped.wait()
            finally:
                server.close()
                for task in list(tasks):
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, queues: Queues | None
    ) -> None:
        from firsthand.review.server.protocol import Service, build_server  # noqa: PLC0415
        from firsthand.review.server.transport import LineTooLongError, serve  # noqa: PLC0415

        try:
            if not await admit(reader, writer, self._token, taken=self._taken, uid=os.geteuid()):
                return
            if self._taken:
                return
            self._taken = True
            await welcome(writer)
            service = Service(tools=tool_schemas(), log=self._log, desk=self._desk, queues=queues)
            with contextlib.suppress(LineTooLongError):
                await serve(build_server(service), reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
