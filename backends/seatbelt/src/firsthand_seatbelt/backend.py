"""The backend: is this a Mac that could confine, and an enclosure around a working copy."""

from __future__ import annotations

import hashlib
import os
import platform
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import resources
from pathlib import Path
from typing import Final

from firsthand.isolation.interface import (
    Availability,
    Available,
    Enclosure,
    IsolationError,
    Limits,
    ProcessWatch,
    Unavailable,
    Workspace,
)
from firsthand.records import Launcher
from firsthand_seatbelt import darwin
from firsthand_seatbelt.enclosure import Means, SeatbeltEnclosure
from firsthand_seatbelt.interpreter import this_interpreter
from firsthand_seatbelt.profile import ProfileTemplate

SANDBOX_EXEC: Final = "/usr/bin/sandbox-exec"
"""Never looked up on PATH: a program of that name in front would be the whole sandbox."""

PRIORITY: Final = 100

NOT_ENFORCED: Final = (
    "the end of descendants that enter a session of their own: they may outlive the command, still confined",
    "process ids: there is no namespace; other processes' ids can be guessed, not looked into and not signalled",
    "memory of one process: the limit on data is set, but macOS does not count all memory against it",
    "memory of all processes together",
    "number of processes: macOS counts all processes of the user, so the bound moves with what else runs",
    "size and number of files of the working copy, size of HOME and TMPDIR: sampled, not capped by the kernel",
    "size of what a command hides in folders that it made unreadable: not counted",
)


class SeatbeltBackend:
    """Confines commands on macOS; see `firsthand.isolation.interface.Backend` for the contract."""

    name = "seatbelt"

    def __init__(self) -> None:
        self._found: Means | None = None

    def availability(self) -> Availability:
        """Looks for macOS, the system's own sandbox-exec, and a Python that can be shown inside; runs nothing."""
        means = self._look()
        if isinstance(means, Unavailable):
            return means
        return Available(
            launcher=Launcher(
                path=SANDBOX_EXEC,
                version=f"macOS {platform.mac_ver()[0]}",
                sha256=hashlib.sha256(Path(SANDBOX_EXEC).read_bytes()).hexdigest(),
            ),
            profile_digest=profile_digest(means.template, means.inside),
            priority=PRIORITY,
            ends_all=False,
            not_enforced=NOT_ENFORCED,
        )

    def enclose(
        self, workspace: Workspace, limits: Limits, processes: ProcessWatch
    ) -> AbstractContextManager[Enclosure]:
        """See `Backend.enclose`.

        Raises:
            IsolationError: also on any system but macOS: nothing is ever run unconfined.
        """
        return self._enclose(workspace, limits, processes)

    @contextmanager
    def _enclose(self, workspace: Workspace, limits: Limits, processes: ProcessWatch) -> Iterator[Enclosure]:
        means = self._look()
        if isinstance(means, Unavailable):
            raise IsolationError(means.reason, where=self.name, next_step=means.next_step)
        enclosure = SeatbeltEnclosure(means, workspace, limits, processes)
        try:
            yield enclosure
        finally:
            enclosure.end()

    def _look(self) -> Means | Unavailable:
        system = platform.system()
        if system != "Darwin":
            return Unavailable(f"Seatbelt is part of macOS, this is {system}", "use the backend made for this system")
        if refusal := launcher_refusal(SANDBOX_EXEC):
            return Unavailable(refusal, "repair macOS: this program is part of the system")
        if os.geteuid() == 0:
            return Unavailable(
                "running as root: checks would run as root, held by nothing but the profile",
                "run Firsthand as an ordinary user, without sudo",
            )
        if darwin.inside_a_sandbox():
            return Unavailable(
                "Firsthand itself runs inside a sandbox, and a second one can't be entered from there",
                "start Firsthand outside, or let the outer sandbox not confine it",
            )
        if self._found is None:
            try:
                self._found = _means()
            except IsolationError as error:
                return Unavailable(f"{error.message} ({error.where})", error.next_step)
        return self._found


def launcher_refusal(path: str) -> str:
    """Why a program can't be trusted to be the system's launcher; empty when it can.

    It must be a regular file, executable, owned by root and writable by nobody else.
    """
    try:
        found = os.lstat(path)
    except OSError as error:
        return f"{path} can't be found: {error.strerror}"
    if not stat.S_ISREG(found.st_mode):
        return f"{path} is not a regular file"
    if found.st_uid != 0 or found.st_mode & 0o022:
        return f"{path} can be changed by others than root"
    if not found.st_mode & 0o111:
        return f"{path} is not executable"
    return ""


def profile_digest(template: ProfileTemplate, inside: str) -> str:
    """SHA-256 over all that shapes the confinement: the template and the program that sets the limits."""
    return hashlib.sha256(f"{template.digest}\n{inside}".encode()).hexdigest()


def inside_text() -> str:
    """The text of the launcher that runs inside the sandbox."""
    return resources.files(__package__).joinpath("inside.py").read_text(encoding="ascii")


def _means() -> Means:
    return Means(
        sandbox_exec=SANDBOX_EXEC,
        template=ProfileTemplate.shipped(),
        inside=inside_text(),
        interpreter=this_interpreter(darwin.loaded_images(), home=os.path.expanduser("~")),
        kernel=darwin.Darwin(),
    )
