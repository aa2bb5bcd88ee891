"""The bench: runs probes' commands in the backend's enclosure, and the same attempts unconfined as controls."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from firsthand.isolation.battery.probe import Attempt, Line, Side
from firsthand.isolation.battery.stage import Stage
from firsthand.isolation.interface import (
    MIB,
    Available,
    Backend,
    Enclosure,
    IsolationError,
    Limits,
    ProcessWatch,
    Request,
    Result,
    Workspace,
)

BENCH_LIMITS = Limits(
    processes=24 if sys.platform == "linux" else 512,
    memory_bytes=256 * MIB,
    file_bytes=4 * MIB,
    copy_bytes=8 * MIB,
    scratch_bytes=8 * MIB,
    output_bytes=128 * 1024,
)
"""Of every run: roomy for an attempt, small enough to be reached soon.

Where the system counts all processes of a user, sandboxed or not, a small number of them would stop everything.
"""

_SHARED_TIMEOUT_S = 30.0
_SHELL_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Ran:
    """One command of a probe's own.

    Attributes:
        result: None if the backend raised instead of answering.
        failure: what it raised.
        lines: what the program inside reported, by attempt.
        copy: the working copy as the host has it.
        elapsed_s: until the backend came back, by the host's clock.
    """

    result: Result | None
    failure: str
    lines: Mapping[str, Line]
    copy: Path
    elapsed_s: float

    def told(self) -> str:
        """The outcome in a few words."""
        if self.result is None:
            return self.failure
        outcome = self.result.outcome
        number = next((str(n) for n in (outcome.exit_code, outcome.signal, outcome.limit) if n is not None), "")
        detail = f" ({outcome.detail})" if outcome.detail else ""
        return f"{outcome.kind} {number}".strip() + f", cleanup {outcome.cleanup}{detail}"


class Bench:
    """One backend under examination. A context manager: leaving it closes the enclosures."""

    def __init__(self, backend: Backend, available: Available, stage: Stage, processes: ProcessWatch) -> None:
        self.stage = stage
        self.available = available
        self._backend = backend
        self._processes = processes
        self._stack = ExitStack()
        self._shared: tuple[Enclosure, Path] | None = None
        self._lines: dict[Side, Mapping[str, Line]] = {"inside": {}, "control": {}}
        self._silent: dict[Side, str] = {"inside": "not asked", "control": "not asked"}
        self._attempted_in = stage.workplace
        self._details: dict[tuple[Side, str], Mapping[str, Any] | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def make(self, attempts: Sequence[Attempt]) -> None:
        """Make all harmless attempts: one run inside, one unconfined, both at the same time."""
        orders = {side: self._order(side, attempts) for side in ("inside", "control")}
        control = self._start_control(orders["control"])
        try:
            ran = self.run(self._argv("attempts", orders["inside"]), timeout_s=_SHARED_TIMEOUT_S)
            self._lines["inside"] = ran.lines
            self._attempted_in = ran.copy
            self._silent["inside"] = f"no report: {ran.told()}"
        finally:
            try:
                output, _ = control.communicate(timeout=_SHARED_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                control.kill()
                output, _ = control.communicate()
        self._lines["control"] = self._parse(output)
        self._silent["control"] = f"no report: the control ended with {control.returncode}"

    @property
    def shared_copy(self) -> Path:
        """The copy of the run that all harmless attempts share, as the host has it."""
        return self._attempted_in

    def asked(self, attempt: Attempt) -> bool:
        """Whether there is anything to attempt on this machine."""
        return self._detail("inside", attempt) is not None

    def line(self, side: Side, attempt: Attempt) -> Line | None:
        """What the program said about an attempt of the shared run."""
        return self._lines[side].get(attempt.id)

    def why_silent(self, side: Side) -> str:
        """Why there is no line."""
        return self._silent[side]

    def run_calls(self, name: str, calls: Sequence[Mapping[str, Any]], *, timeout_s: float) -> Ran:
        """Have the program inside make these calls in a run of their own: each with `id`, `call` and its details."""
        order = {"nonce": self.stage.nonce, "attempts": [dict(call) for call in calls]}
        return self.run(self._argv(name, order), timeout_s=timeout_s)

    def control_calls(self, calls: Sequence[Mapping[str, Any]]) -> Mapping[str, Line]:
        """The same, unconfined, in the control's folder."""
        control = self._start_control({"nonce": self.stage.nonce, "attempts": [dict(call) for call in calls]})
        try:
            output, _ = control.communicate(timeout=_SHARED_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            control.kill()
            output, _ = control.communicate()
        return self._parse(output)

    def shell(self, script: str) -> Ran:
        """Run one line of shell inside."""
        return self.run(("/bin/sh", "-c", script), timeout_s=_SHELL_TIMEOUT_S)

    def run(self, argv: Sequence[str], *, timeout_s: float) -> Ran:
        """Run one command inside and never raise for it.

        All commands share one enclosure. Where the backend can't prove the end of every descendant, each command gets
        one of its own around a fresh copy, as the core does it too.
        """
        request = Request(argv=tuple(argv), executable=argv[0], timeout_s=timeout_s)
        started = time.monotonic()
        copy = self.stage.workplace
        result: Result | None = None
        failure = ""
        try:
            with ExitStack() as stack:
                enclosure, copy = self._enclosure(stack)
                started = time.monotonic()
                result = enclosure.run(request)
                elapsed_s = time.monotonic() - started
        except Exception as error:  # noqa: BLE001 - a plug-in's fault is an answer about the plug-in
            failure = f"the backend raised {type(error).__name__}: {error}"
            elapsed_s = time.monotonic() - started
        lines = self._parse(result.stdout.data) if result is not None else {}
        return Ran(result, failure, lines, copy, elapsed_s)

    def rewrite(self, path: str, data: bytes, mode: int, prepare: Mapping[str, str | bytes]) -> tuple[Path, str]:
        """Have the backend rewrite one file, after the host changed the copy behind its back.

        Args:
            path: relative path to rewrite.
            data: new content.
            mode: new permission bits.
            prepare: relative path to what the host puts there once the enclosure is open: bytes for an ordinary file,
                text for the target of a symbolic link.

        Returns:
            The copy, and what the backend refused with, if it did.
        """
        with ExitStack() as stack:
            enclosure, copy = self._enclosure(stack)
            for name, content in prepare.items():
                (copy / name).unlink(missing_ok=True)
                if isinstance(content, bytes):
                    (copy / name).write_bytes(content)
                else:
                    (copy / name).symlink_to(content)
            try:
                enclosure.rewrite(path, data, mode)
            except IsolationError as error:
                return copy, error.message
        return copy, ""

    def _enclosure(self, stack: ExitStack) -> tuple[Enclosure, Path]:
        if not self.available.ends_all:
            return self._open(stack)
        if self._shared is None:
            self._shared = self._open(self._stack)
        return self._shared

    def _open(self, stack: ExitStack) -> tuple[Enclosure, Path]:
        copy = self.stage.new_copy()
        private = self.stage.workplace / "private" / copy.name
        private.mkdir(mode=0o700)
        workspace = Workspace(
            copy=copy,
            shown_at=self.stage.source,
            private=private,
            roots=(*self.stage.interpreter.roots, self.stage.tools),
            token=f"battery-{self.stage.nonce}",
        )
        return stack.enter_context(self._backend.enclose(workspace, BENCH_LIMITS, self._processes)), copy

    def _argv(self, name: str, order: Mapping[str, Any]) -> tuple[str, ...]:
        return (*self.stage.interpreter.command, "probe", name, json.dumps(order))

    def _detail(self, side: Side, attempt: Attempt) -> Mapping[str, Any] | None:
        key = (side, attempt.id)
        if key not in self._details:
            self._details[key] = attempt.detail(self.stage, side)
        return self._details[key]

    def _order(self, side: Side, attempts: Sequence[Attempt]) -> Mapping[str, Any]:
        calls = []
        for attempt in attempts:
            detail = self._detail(side, attempt)
            if detail is not None and (side == "inside" or attempt.controlled):
                calls.append({"id": attempt.id, "call": attempt.call, **detail})
        return {"nonce": self.stage.nonce, "attempts": calls}

    def _start_control(self, order: Mapping[str, Any]) -> subprocess.Popen[bytes]:
        """An ordinary child process: clean environment but for the canary, and the descriptor that is left open."""
        folder = self.stage.workplace / "control"
        if not (folder / "copy").exists():
            self.stage.new_copy().rename(folder / "copy")
        environment = {"HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}
        return subprocess.Popen(
            self._argv("control", order),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**environment, "CANARY": self.stage.token("environment")},
            cwd=folder / "copy",
            pass_fds=(self.stage.descriptor,),
            start_new_session=True,
        )

    def _parse(self, output: bytes) -> Mapping[str, Line]:
        """Lines of this battery's program, told from anything else by the nonce."""
        lines: dict[str, Line] = {}
        for raw in output.split(b"\n"):
            try:
                line = json.loads(raw)
            except ValueError:
                continue
            if isinstance(line, dict) and line.get("nonce") == self.stage.nonce and isinstance(line.get("id"), str):
                lines[line["id"]] = line
        return lines
