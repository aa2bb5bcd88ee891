"""One working copy, confined: each command has its own profile, which grants the copy, a new HOME and a new TMPDIR."""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from firsthand.files.refusal import RemovalError
from firsthand.files.removal import remove_path
from firsthand.isolation.environment import fixed_environment
from firsthand.isolation.interface import (
    IsolationError,
    Limits,
    ProcessWatch,
    Request,
    Result,
    RunCancelledError,
    Workspace,
)
from firsthand_seatbelt.interpreter import Interpreter
from firsthand_seatbelt.kernel import Kernel
from firsthand_seatbelt.outcome import End, Stopped, never_ran, outcome_of
from firsthand_seatbelt.paths import kernel_spelling
from firsthand_seatbelt.process import ConfinedGroup
from firsthand_seatbelt.profile import Grants, ProfileTemplate
from firsthand_seatbelt.watchdog import Watchdog, Watched

USER: Final = "sandbox"
WRITE_S: Final = 20.0
_DRAIN_S: Final = 0.4
_ASK_S: Final = 0.2
"""How often, at least, it is asked whether the request was cancelled."""
_NO_LIMIT: Final = "-"


@dataclass(frozen=True, slots=True)
class Means:
    """What an enclosure works with; the same for all of a backend."""

    sandbox_exec: str
    template: ProfileTemplate
    inside: str
    """Text of `inside.py`."""
    interpreter: Interpreter
    kernel: Kernel


class SeatbeltEnclosure:
    """See `firsthand.isolation.interface.Enclosure` for the contract."""

    def __init__(self, means: Means, workspace: Workspace, limits: Limits, processes: ProcessWatch) -> None:
        """Spell out every path once.

        Raises:
            IsolationError: a path can't be confined, or a dependency folder inside the source is asked for.
        """
        self._means = means
        self._workspace = workspace
        self._limits = limits
        self._processes = processes
        if workspace.in_source:
            raise IsolationError(
                "dependency folders inside the source can't be shown here: macOS has no mounts for one process, and"
                " showing them at their own place would open the source; not supported until shown on a Mac",
                where=", ".join(ascii(str(path)) for path in workspace.in_source),
                next_step="install the dependencies outside the source and name that folder in `toolchains`",
            )
        self._copy = kernel_spelling(workspace.copy, what="the working copy")
        self._private = kernel_spelling(workspace.private, what="the backend's private folder")
        roots = [kernel_spelling(root, what="a toolchain root") for root in workspace.roots]
        links = [_spelled_link(path) for path, _ in workspace.links]
        self._roots = tuple(dict.fromkeys([*roots, *means.interpreter.roots]))
        self._links = tuple(dict.fromkeys([*links, *means.interpreter.links]))
        self._path = tuple(str(folder) for folder in workspace.path)
        self._open: list[ConfinedGroup] = []
        # A root in the way of the work area is refused now, not when the first command is due.
        self._means.template.render(self._grants(f"{self._private}/h", f"{self._private}/t"))

    def run(self, request: Request) -> Result:
        """See `Enclosure.run`."""
        begun = time.monotonic()
        with ExitStack() as stack:
            try:
                home, tmpdir = stack.enter_context(self._scratch())
                inside = ["run", self._copy, request.cwd, request.executable, *request.argv]
                nothing = stack.enter_context(open(os.devnull, "rb"))
                group = self._start(home, tmpdir, request.environment, nothing.fileno(), inside)
            except (IsolationError, OSError, ValueError) as error:
                return never_ran(f"the sandbox could not be set up: {error}", begun)
            return self._supervise(group, request.timeout_s, home, tmpdir, request.cancelled or _never)

    def rewrite(self, path: str, data: bytes, mode: int) -> None:
        """See `Enclosure.rewrite`. The content travels as an open descriptor, which the sandbox lets through."""
        inside = ["write", self._copy, path, str(mode), str(len(data))]
        with ExitStack() as stack:
            try:
                home, tmpdir = stack.enter_context(self._scratch())
                content = stack.enter_context(tempfile.TemporaryFile(dir=self._private))
                content.write(data)
                content.seek(0)
                group = self._start(home, tmpdir, {}, content.fileno(), inside)
            except (OSError, ValueError) as error:
                raise _not_written(path, str(error)) from error
            outcome = self._supervise(group, WRITE_S, home, tmpdir, _never).outcome
        if "done" not in group.words or outcome.exit_code != 0 or outcome.cleanup == "unknown":
            raise _not_written(path, outcome.detail or outcome.kind)

    def end(self) -> None:
        """End whatever is still open; the context manager's last act."""
        for group in self._open:
            group.end()
            group.close()
        self._open.clear()

    def _grants(self, home: str, tmpdir: str) -> Grants:
        return Grants(copy=self._copy, home=home, tmpdir=tmpdir, roots=self._roots, links=self._links)

    @contextmanager
    def _scratch(self) -> Iterator[tuple[str, str]]:
        """A HOME and a TMPDIR that no earlier profile grants. Short names: a socket's path has 104 bytes."""
        folder = Path(self._private) / secrets.token_hex(4)
        folder.mkdir(mode=0o700)
        home, tmpdir = folder / "h", folder / "t"
        home.mkdir(mode=0o700)
        tmpdir.mkdir(mode=0o700)
        try:
            yield str(home), str(tmpdir)
        finally:
            # What resists, or is still being filled by one that lingers, is left to the core, which removes the
            # private folder as a whole.
            with suppress(RemovalError):
                remove_path(folder)

    def _start(
        self, home: str, tmpdir: str, added: Mapping[str, str], stdin: int, inside: Sequence[str]
    ) -> ConfinedGroup:
        means = self._means
        options = means.template.render(self._grants(home, tmpdir)).options()
        limits = self._kernel_limits()
        name = f"firsthand-{self._workspace.token}"

        def argv(status: int, control: int) -> list[str]:
            head = [means.sandbox_exec, *options, means.interpreter.executable, "-I", "-S", "-c", means.inside]
            return [*head, name, str(status), str(control), limits, *inside]

        group = ConfinedGroup(
            argv,
            environment=fixed_environment(path=self._path, home=home, tmpdir=tmpdir, user=USER, added=added),
            stdin=stdin,
            output_bytes=self._limits.output_bytes,
            kernel=means.kernel,
            processes=self._processes,
        )
        self._open.append(group)
        return group

    def _kernel_limits(self) -> str:
        """Values for `inside.LIMIT_NAMES`. macOS counts processes per user, so the user's own are added."""
        running = self._means.kernel.processes_of(os.getuid())
        processes = _NO_LIMIT if running is None else str(running + self._limits.processes)
        return ",".join((processes, str(self._limits.memory_bytes), str(self._limits.file_bytes), "0"))

    def _supervise(
        self, group: ConfinedGroup, timeout_s: float, home: str, tmpdir: str, cancelled: Callable[[], bool]
    ) -> Result:
        begun = time.monotonic()
        stopped: Stopped | Literal["cancelled"] = None
        leftovers = 0
        try:
            ready = group.await_ready()
            if ready:
                begun = time.monotonic()
                group.release()
                stopped = _watch(group, begun + timeout_s, self._watchdog(home, tmpdir), cancelled)
                leftovers = group.others() if stopped is None else 0
            duration_ms = round((time.monotonic() - begun) * 1000)
            cleanup = group.end()
            group.drain(_DRAIN_S)
        finally:
            group.end()
            group.close()
            self._open.remove(group)
        if stopped == "cancelled":
            raise RunCancelledError(cleanup)
        end = End(ready=ready, stopped=stopped, cleanup=cleanup, duration_ms=duration_ms, leftovers=leftovers)
        return Result(
            outcome=outcome_of(group, end), stdout=group.streams[0].captured(), stderr=group.streams[1].captured()
        )

    def _watchdog(self, home: str, tmpdir: str) -> Watchdog:
        limits = self._limits
        scratch = [Watched(folder, limits.scratch_bytes) for folder in (home, tmpdir)]
        return Watchdog([Watched(self._copy, limits.copy_bytes, limits.copy_entries), *scratch])


def _never() -> bool:
    return False


def _watch(
    group: ConfinedGroup, deadline: float, watchdog: Watchdog, cancelled: Callable[[], bool]
) -> Stopped | Literal["cancelled"]:
    """Read along until the command ends by itself (None), or tell which bound ended its time."""
    while True:
        if group.exited:
            return None
        now = time.monotonic()
        if now >= deadline:
            return "deadline"
        if cancelled():
            return "cancelled"
        if now >= watchdog.due_at and (exceeded := watchdog.look()) is not None:
            return exceeded
        group.step(min(deadline - now, watchdog.due_at - now, _ASK_S))
        for stream in group.streams:
            if stream.over:
                return stream.name


def _spelled_link(path: Path) -> str:
    """A link's own path: its parent resolved, its last name kept."""
    return str(Path(kernel_spelling(path.parent, what="the folder of a toolchain link")) / path.name)


def _not_written(path: str, reason: str) -> IsolationError:
    return IsolationError(
        f"the file could not be written inside the sandbox: {reason}",
        where=ascii(path),
        next_step="compare the working copy: it must not be used further",
    )
