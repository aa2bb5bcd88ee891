"""One command after the other, each in a sandbox of its own, from its start to its proven end."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

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
from firsthand.records import Outcome
from firsthand_plainbox.options import OWN, PYTHON, options

_START_S: Final = 10.0
_END_S: Final = 1.5
_DRAIN_S: Final = 0.3
_ASK_S: Final = 0.2
_SAMPLE_S: Final = 0.1
_REWRITE_S: Final = 10.0

# Runs inside, like any command. It walks down by descriptors and replaces by a rename, so that a link, on the way or at
# the end, is refused or replaced, never followed.
_REWRITE: Final = f"""
import os, sys
*folders, name = sys.argv[1].split("/")
place = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
for folder in folders:
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
new = os.open(name + ".plainbox", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=place)
with open(new, "wb") as target, open("{OWN}/content", "rb") as content:
    target.write(content.read())
    os.fchmod(new, int(sys.argv[2], 8))
os.rename(name + ".plainbox", name, src_dir_fd=place, dst_dir_fd=place)
"""


@dataclass(frozen=True, slots=True)
class Box:
    """What every command of one enclosure shares."""

    launcher: str
    seccomp: bytes
    workspace: Workspace
    limits: Limits
    uid: int | None
    """What the supervisor drops to where the host is root."""


class PlainboxEnclosure:
    """See `firsthand.isolation.interface.Enclosure` for what each method promises."""

    def __init__(self, box: Box, processes: ProcessWatch) -> None:
        self._box = box
        self._processes = processes

    def run(self, request: Request) -> Result:
        """Run one command."""
        begun = time.monotonic()
        with _Run(self._box, request, self._processes) as run:
            end = run.supervise()
            gone = run.end()
            if end["kind"] == "cancelled":
                raise RunCancelledError("complete" if gone else "unknown")
            streams = run.drain()
        duration_ms = round((time.monotonic() - begun) * 1000)
        cleanup = "complete" if gone else "unknown"
        outcome = Outcome.model_validate({**end, "cleanup": cleanup, "duration_ms": duration_ms})
        return Result(outcome, *streams)

    def rewrite(self, path: str, data: bytes, mode: int) -> None:
        """Replace one file, by a command of our own."""
        content = self._box.workspace.private / "own" / "content"
        content.write_bytes(data)
        content.chmod(0o644)
        argv = (PYTHON, "-I", "-S", "-c", _REWRITE, path, f"{mode:o}")
        result = self.run(Request(argv=argv, executable=PYTHON, timeout_s=_REWRITE_S))
        outcome = result.outcome
        if (outcome.kind, outcome.exit_code, outcome.cleanup) != ("exited", 0, "complete"):
            said = result.stderr.data.decode("utf-8", "backslashreplace").strip().rpartition("\n")[2]
            raise IsolationError(
                f"the file could not be rewritten inside the sandbox: {said or outcome.detail or outcome.kind}",
                where=path,
                next_step="run `firsthand conformance plainbox`; the source is untouched",
            )


class _Run:
    """One sandbox. A context manager: leaving it ends whatever lives in it and gives back its descriptors."""

    def __init__(self, box: Box, request: Request, processes: ProcessWatch) -> None:
        self._limits = box.limits
        self._copy = box.workspace.copy
        self._timeout_s = request.timeout_s
        self._cancelled = request.cancelled
        self._processes = processes
        self._output = {1: bytearray(), 2: bytearray()}
        self._closed: set[int] = set()
        self._init = -1
        self._init_pid = 0
        status_r, status_w = os.pipe()
        guard_r, self._guard = os.pipe()
        info_r, info_w = os.pipe()
        self._status, self._info = status_r, info_r
        words = options(box.workspace, box.limits, box.uid, request.environment)
        arguments = _memory_file("\0".join([*words, ""]).encode())
        seccomp = _memory_file(box.seccomp)
        order = {
            "status_fd": status_w,
            "uid": box.uid,
            "cwd": str(box.workspace.shown_at / request.cwd),
            "executable": request.executable,
            "argv": [request.executable, *request.argv[1:]],
            "limits": {
                "RLIMIT_NPROC": box.limits.processes,
                "RLIMIT_DATA": box.limits.memory_bytes,
                "RLIMIT_FSIZE": box.limits.file_bytes,
                "RLIMIT_CORE": 0,
            },
        }
        # The token stands among the arguments of every process until the command: survivors of a crash are found by it.
        supervisor = [PYTHON, "-I", "-S", "-B", f"{OWN}/supervisor.py", json.dumps(order), box.workspace.token]
        descriptors = ["--args", str(arguments), "--seccomp", str(seccomp), "--info-fd", str(info_w)]
        try:
            self._bwrap = subprocess.Popen(
                [box.launcher, *descriptors, "--", *supervisor],
                env={},
                cwd="/",
                stdin=guard_r,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(arguments, seccomp, info_w, status_w),
                start_new_session=True,
                bufsize=0,
            )
        finally:
            for descriptor in (status_w, guard_r, info_w, arguments, seccomp):
                os.close(descriptor)
        self._processes.started(self._bwrap.pid)
        assert self._bwrap.stdout is not None  # noqa: S101 - asked for above; for the type checker
        assert self._bwrap.stderr is not None  # noqa: S101 - the same
        self._streams = {self._bwrap.stdout.fileno(): 1, self._bwrap.stderr.fileno(): 2}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        for descriptor in (self._status, self._info, *([self._init] if self._init >= 0 else [])):
            os.close(descriptor)
        for stream in (self._bwrap.stdout, self._bwrap.stderr):
            if stream is not None:
                stream.close()

    def supervise(self) -> dict[str, Any]:
        """Wait for the command's end, or for a bound; how it ended, as fields of an outcome."""
        if not self._take_hold():
            return self._failed()
        os.write(self._guard, b"g")
        deadline = time.monotonic() + self._timeout_s
        sample_at = time.monotonic() + _SAMPLE_S
        report = b""
        while not report.endswith(b"\n"):
            now = time.monotonic()
            if bound := self._bound(now, deadline):
                return {"kind": bound}
            if now >= sample_at:
                if limit := self._copy_limit():
                    return {"kind": "output-limit", "limit": limit}
                # A large copy takes long to look at; the pause keeps the watching a small share of the time.
                sample_at = time.monotonic() + max(_SAMPLE_S, 5 * (time.monotonic() - now))
            for descriptor in self._readable(
                [self._status, *self._open()], min(deadline, sample_at, now + _ASK_S) - now
            ):
                if descriptor != self._status:
                    if limit := self._read(descriptor):
                        return {"kind": "output-limit", "limit": limit}
                elif piece := os.read(descriptor, 4096):
                    report += piece
                else:
                    return self._failed()
        return _told(json.loads(report))

    def _bound(self, now: float, deadline: float) -> str:
        if now >= deadline:
            return "timed-out"
        return "cancelled" if self._cancelled is not None and self._cancelled() else ""

    def end(self) -> bool:
        """Kill process 1 and wait for it: the kernel lets its end be seen only when the namespace is empty."""
        if self._guard >= 0:
            os.close(self._guard)
            self._guard = -1
            if self._init >= 0:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._init, signal.SIGKILL)
            else:
                self._bwrap.kill()  # it never told its child's number: the guard ends that child
        if self._init >= 0 and not self._readable([self._init], _END_S):
            return False
        try:
            self._bwrap.wait(_END_S)
        except subprocess.TimeoutExpired:
            return False
        for pid in filter(None, (self._init_pid, self._bwrap.pid)):
            self._processes.ended(pid)
        self._init_pid = 0
        return True

    def drain(self) -> Iterator[Captured]:
        """What is left in the pipes; every writer is gone, and the bound is for when that could not be shown."""
        deadline = time.monotonic() + _DRAIN_S
        while self._open() and (readable := self._readable(self._open(), deadline - time.monotonic())):
            for descriptor in readable:
                self._read(descriptor)
        return (_captured(bytes(data)) for data in self._output.values())

    def _take_hold(self) -> bool:
        """Get hold of process 1 while it waits for the go: it can't be another process then."""
        raw, deadline = b"", time.monotonic() + _START_S
        while b"}" not in raw and self._readable([self._info], deadline - time.monotonic()):
            piece = os.read(self._info, 4096)
            if not piece:
                return False
            raw += piece
        try:
            self._init_pid = int(json.loads(raw)["child-pid"])
            self._init = os.pidfd_open(self._init_pid)
        except (OSError, ValueError, KeyError):
            return False
        self._processes.started(self._init_pid)
        return True

    def _failed(self) -> dict[str, Any]:
        """No report: whatever exit status bwrap gives, the command's end is not known, so it is not told."""
        self.end()
        list(self.drain())
        said = bytes(self._output[2]).decode("utf-8", "backslashreplace").strip()
        return {"kind": "sandbox-failed", "detail": said or "the sandbox ended without a report"}

    def _read(self, descriptor: int) -> str:
        """Take what is there; the name of the stream if it exceeds its limit."""
        stream = self._streams[descriptor]
        data = self._output[stream]
        piece = os.read(descriptor, min(65536, self._limits.output_bytes - len(data) + 1))
        if not piece:
            self._closed.add(descriptor)
        data += piece
        if len(data) <= self._limits.output_bytes:
            return ""
        del data[self._limits.output_bytes :]
        self._closed.add(descriptor)
        return "stdout" if stream == 1 else "stderr"

    def _open(self) -> list[int]:
        return [descriptor for descriptor in self._streams if descriptor not in self._closed]

    def _copy_limit(self) -> str:
        total = entries = 0
        for folder, folders, files in os.walk(self._copy):
            entries += len(folders) + len(files)
            for name in files:
                with contextlib.suppress(OSError):
                    total += os.lstat(os.path.join(folder, name)).st_blocks * 512
        if total > self._limits.copy_bytes:
            return "copy-size"
        return "copy-entries" if entries > self._limits.copy_entries else ""

    @staticmethod
    def _readable(descriptors: list[int], timeout_s: float) -> list[int]:
        poll = select.poll()
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        return [descriptor for descriptor, _ in poll.poll(max(0.0, timeout_s) * 1000)]


def _told(report: dict[str, Any]) -> dict[str, Any]:
    leftovers = {"leftovers": report["leftovers"]}
    if "exited" in report:
        return {"kind": "exited", "exit_code": report["exited"], **leftovers}
    if "signalled" in report:
        return {"kind": "signalled", "signal": report["signalled"], **leftovers}
    kind = "could-not-start" if report["failed"] == "start" else "sandbox-failed"
    return {"kind": kind, "detail": report["why"]}


def _captured(data: bytes) -> Captured:
    return Captured(data=data, total_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def _memory_file(content: bytes) -> int:
    descriptor = os.memfd_create("plainbox")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def own(folder: Path, uid: int) -> None:
    """Give a folder and all in it to the uid that commands run under; links are given, not followed."""
    os.chown(folder, uid, uid)
    for above, folders, files, descriptor in os.fwalk(folder):
        for name in (*folders, *files):
            try:
                os.chown(name, uid, uid, dir_fd=descriptor, follow_symlinks=False)
            except OSError as error:
                if error.errno != errno.ENOENT:
                    raise IsolationError(
                        f"the working copy can't be given to uid {uid}: {error.strerror}",
                        where=os.path.join(above, name),
                        next_step="keep other programs out of the working copy",
                    ) from error
