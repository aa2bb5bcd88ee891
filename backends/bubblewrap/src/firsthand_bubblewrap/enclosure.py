"""Commands in the sandbox, one at a time: drain, watch clock and limits, end everything, tell what happened."""

from __future__ import annotations

import hashlib
import os
import secrets
import selectors
import time
from collections.abc import Callable
from typing import Final, Literal

from firsthand.isolation.interface import (
    Captured,
    IsolationError,
    Limits,
    ProcessWatch,
    Request,
    Result,
    RunCancelledError,
    Workspace,
)
from firsthand.records import Cleanup, LimitName, Outcome
from firsthand_bubblewrap.options import Account, options
from firsthand_bubblewrap.process import Sandbox, StartError
from firsthand_bubblewrap.script import GO, RUN, command_line
from firsthand_bubblewrap.watch import Watchdog

_CHUNK_BYTES: Final = 65536
_LOOK_S: Final = 0.2
"""How often, at least, it is asked whether the request was cancelled."""
_DRAIN_S: Final = 0.3
_REWRITE_S: Final = 10.0
_EXEC_FAILURES: Final = (126, 127)

# Writes beside the target and renames over it, so that a link at the target is replaced, never followed. `set -C` makes
# the shell create the new file exclusively.
_REWRITE: Final = f"""set -eC
umask 077
cat {RUN}/content >"$1"
chmod "$2" -- "$1" && mv -fT -- "$1" "$3" && exit
rm -f -- "$1"
exit 1
"""


class _Stream:
    """Reads one output stream up to a limit, hashing what it read."""

    def __init__(self, name: Literal["stdout", "stderr"], descriptor: int, limit_bytes: int) -> None:
        self.name: LimitName = name
        self.descriptor = descriptor
        self.over = False
        self.closed = False
        self._limit_bytes = limit_bytes
        self._chunks: list[bytes] = []
        self._total = 0
        self._digest = hashlib.sha256()

    def read(self) -> None:
        """Take what is there; sets `over` at the limit and `closed` at the end."""
        try:
            chunk = os.read(self.descriptor, min(_CHUNK_BYTES, self._limit_bytes - self._total + 1))
        except BlockingIOError:
            return
        self.closed = not chunk
        if self._total + len(chunk) > self._limit_bytes:
            chunk = chunk[: self._limit_bytes - self._total]
            self.over = True
        self._chunks.append(chunk)
        self._digest.update(chunk)
        self._total += len(chunk)

    def captured(self) -> Captured:
        return Captured(data=b"".join(self._chunks), total_bytes=self._total, sha256=self._digest.hexdigest())


class BubblewrapEnclosure:
    """One working copy behind bwrap; see `firsthand.isolation.interface.Enclosure` for the contract."""

    def __init__(
        self,
        *,
        launcher: str,
        runtime: list[str],
        seccomp: bytes,
        workspace: Workspace,
        limits: Limits,
        account: Account,
        processes: ProcessWatch,
    ) -> None:
        self._launcher = launcher
        self._runtime = runtime
        self._seccomp = seccomp
        self._workspace = workspace
        self._limits = limits
        self._account = account
        self._processes = processes

    def run(self, request: Request) -> Result:
        """See `Enclosure.run`."""
        begun = time.monotonic()
        arguments = options(
            self._workspace,
            self._limits,
            self._account,
            self._runtime,
            environment=request.environment,
        )
        line = command_line(
            (request.executable, *request.argv[1:]),
            cwd=str(self._workspace.shown_at / request.cwd),
            limits=self._limits,
            drop_to=self._account.drop_to,
            token=self._workspace.token,
        )
        go_pipe = self._workspace.private / "run" / GO.rpartition("/")[2]
        try:
            sandbox = Sandbox(
                self._launcher,
                arguments,
                line,
                self._seccomp,
                go_pipe,
                owner=self._account.drop_to,
                processes=self._processes,
            )
        except StartError as error:
            return _nothing(str(error), begun, "complete" if error.ended else "unknown")
        try:
            return self._supervise(sandbox, request)
        finally:
            sandbox.close()

    def rewrite(self, path: str, data: bytes, mode: int) -> None:
        """See `Enclosure.rewrite`."""
        content = self._workspace.private / "run" / "content"
        # No name may be taken for an option.
        target = f"./{path}"
        # A short name of its own: one made of the target's could be too long.
        beside = f"{target.rpartition('/')[0]}/.{secrets.token_hex(8)}"
        argv = ("/usr/bin/sh", "-c", _REWRITE, "rewrite", beside, f"{mode:04o}", target)
        try:
            content.write_bytes(data)
            content.chmod(0o644)
            result = self.run(Request(argv=argv, executable=argv[0], timeout_s=_REWRITE_S))
        except OSError as error:
            raise IsolationError(
                f"the new content can't be laid ready: {error.strerror}",
                where=path,
                next_step="free some space for the state directory",
            ) from error
        finally:
            content.unlink(missing_ok=True)
        outcome = result.outcome
        if outcome.kind != "exited" or outcome.exit_code != 0 or outcome.cleanup != "complete":
            said = result.stderr.data.decode("utf-8", "backslashreplace").strip() or outcome.detail or outcome.kind
            raise IsolationError(
                f"the working copy could not be rewritten inside the sandbox: {said}",
                where=path,
                next_step="run `firsthand doctor`; the working copy is discarded, the source is untouched",
            )

    def _supervise(self, sandbox: Sandbox, request: Request) -> Result:
        streams = (
            _Stream("stdout", sandbox.stdout, self._limits.output_bytes),
            _Stream("stderr", sandbox.stderr, self._limits.output_bytes),
        )
        watchdog = Watchdog(self._workspace.copy, (sandbox.init_pid, sandbox.keeper_pid), self._limits)
        begun = time.monotonic()
        sandbox.release()
        stopped = _watch(sandbox, streams, begun + request.timeout_s, watchdog, request.cancelled or _never)
        status = sandbox.status() if stopped is None else None
        duration_ms = round((time.monotonic() - begun) * 1000)
        cleanup: Cleanup = "complete" if sandbox.end() else "unknown"
        _drain(streams)
        if stopped == "cancelled":
            raise RunCancelledError(cleanup)
        over = next((stream.name for stream in streams if stream.over), None)
        limit = over or (stopped if stopped not in (None, "deadline", "cancelled") else None)

        def outcome(**fields: object) -> Outcome:
            return Outcome.model_validate({"cleanup": cleanup, "duration_ms": duration_ms, **fields})

        if limit is not None:
            end = outcome(kind="output-limit", limit=limit)
        elif stopped == "deadline":
            end = outcome(kind="timed-out")
        elif status is None:
            detail = "the command's status was lost: a process inside ended its own keeper, or the sandbox was killed"
            end = outcome(kind="sandbox-failed", detail=detail)
        elif not status.started:
            # The gate itself ended: the shell says 126 or 127 when it can't execute, and anything else is our failure.
            failed = status.exit_code in _EXEC_FAILURES
            said = streams[1].captured().data.decode("utf-8", "backslashreplace").strip()
            end = outcome(kind="could-not-start" if failed else "sandbox-failed", detail=said or "the gate ended")
        elif status.signal is not None:
            end = outcome(kind="signalled", signal=status.signal, leftovers=status.leftovers)
        else:
            end = outcome(kind="exited", exit_code=status.exit_code, leftovers=status.leftovers)
        return Result(outcome=end, stdout=streams[0].captured(), stderr=streams[1].captured())


def _never() -> bool:
    return False


def _reached(now: float, deadline: float, cancelled: Callable[[], bool]) -> Literal["deadline", "cancelled"] | None:
    if now >= deadline:
        return "deadline"
    return "cancelled" if cancelled() else None


def _watch(
    sandbox: Sandbox,
    streams: tuple[_Stream, _Stream],
    deadline: float,
    watchdog: Watchdog,
    cancelled: Callable[[], bool],
) -> LimitName | Literal["deadline", "cancelled"] | None:
    """Drain both streams until the command ends by itself (None), or tell which bound ended its time."""
    with selectors.DefaultSelector() as selector:
        selector.register(sandbox.command_pidfd, selectors.EVENT_READ)
        for stream in streams:
            selector.register(stream.descriptor, selectors.EVENT_READ, stream)
        while True:
            now = time.monotonic()
            bound = _reached(now, deadline, cancelled)
            if bound is not None:
                return bound
            if now >= watchdog.due_at and (exceeded := watchdog.sample()) is not None:
                return exceeded
            ended = False
            for key, _ in selector.select(max(0.0, min(deadline, watchdog.due_at, now + _LOOK_S) - now)):
                if not isinstance(key.data, _Stream):
                    ended = True
                    continue
                key.data.read()
                if key.data.over:
                    return key.data.name
                if key.data.closed:
                    selector.unregister(key.fileobj)
            if ended:
                return None


def _drain(streams: tuple[_Stream, _Stream]) -> None:
    """Take what is left in the pipes.

    Every writer is gone or killed, so the end of each comes at once. The bound is for a kill that could not be
    established: it limits waiting, not reading what is there, which a stalled host must not lose.
    """
    deadline = time.monotonic() + _DRAIN_S
    for stream in streams:
        with selectors.DefaultSelector() as selector:
            selector.register(stream.descriptor, selectors.EVENT_READ)
            while not (stream.closed or stream.over) and selector.select(max(0.0, deadline - time.monotonic())):
                stream.read()


def _nothing(detail: str, begun: float, cleanup: Cleanup) -> Result:
    """The result of a command that never ran, because its sandbox could not be set up."""
    empty = Captured(data=b"", total_bytes=0, sha256=hashlib.sha256().hexdigest())
    duration_ms = round((time.monotonic() - begun) * 1000)
    outcome = Outcome(kind="sandbox-failed", cleanup=cleanup, duration_ms=duration_ms, detail=detail)
    return Result(outcome=outcome, stdout=empty, stderr=empty)
