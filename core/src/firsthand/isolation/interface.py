"""The contract between the core and an isolation backend.

A backend confines commands; it decides nothing. The core asks for its availability, opens an enclosure around one
working copy, runs commands and rewrites files through it, and grades it by a battery that the backend has no hand in.
A backend registers a class under the entry point group `firsthand.backends`; the class is called without arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from firsthand.errors import FirsthandError
from firsthand.records import Cleanup, Launcher, Outcome

MIB = 1024 * 1024


class IsolationError(FirsthandError):
    """No enclosure can be had: no backend passes, or this request can't be confined (an unsuitable root, say)."""

    default_code = "review_verification_isolation_unavailable"


class RunCancelledError(FirsthandError):
    """A command was ended because its request was cancelled; what it did until then proves nothing.

    Attributes:
        cleanup: whether every descendant is known to be gone.
    """

    default_code = "check_inconclusive"

    def __init__(self, cleanup: Cleanup) -> None:
        self.cleanup = cleanup
        super().__init__("the command was cancelled", next_step="start again")


@dataclass(frozen=True, slots=True)
class Available:
    """The backend could confine here, as far as it can tell without running anything; the battery decides."""

    launcher: Launcher | None
    profile_digest: str
    """SHA-256 over everything that shapes the confinement; part of the battery's cache key."""
    priority: int
    """Backends are tried from the highest priority down; the first whose battery passes is selected."""
    ends_all: bool
    """Whether the end of every descendant can be proved. If not, the core gives every command a fresh working copy
    at a new path, and outcomes say `may-linger`."""
    not_enforced: tuple[str, ...] = ()
    """Limits that this backend can't enforce on this machine, in plain words; they go into the evidence."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The backend can't confine here."""

    reason: str
    next_step: str


Availability: TypeAlias = Available | Unavailable


@dataclass(frozen=True, slots=True)
class Limits:
    """What one command may use. Sizes in bytes, times in seconds."""

    processes: int = 512
    memory_bytes: int = 4096 * MIB
    """Of data per process, and of resident memory of all processes together, where the backend can see it."""
    file_bytes: int = 512 * MIB
    """Largest file that a process may write."""
    copy_bytes: int = 1024 * MIB
    """Size of the working copy while a command runs, by a watchdog."""
    copy_entries: int = 100_000
    """Files and folders in the working copy while a command runs, by a watchdog."""
    scratch_bytes: int = 1024 * MIB
    """Each of HOME, TMPDIR and shared memory."""
    output_bytes: int = MIB
    """Of each of stdout and stderr; more ends the command."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """What an enclosure is opened around.

    Attributes:
        copy: the working copy on the host, absolute, resolved, owned by this process.
        shown_at: where commands see the copy. Linux backends mount it there (the source's own path, which hides the
            source); a backend that can't mount shows the copy at its own path and ignores this.
        private: an empty 0700 folder outside the copy for the backend's own files; removed by the core.
        roots: absolute, resolved folders that commands may read and execute, beyond the system's own runtime.
        links: absolute paths of symbolic links on the way to a root (`/opt/node -> /opt/node-20`), shown as given.
        in_source: absolute dependency folders inside the source, shown read-only at their place. A backend that can't
            do that refuses them by name with `IsolationError`.
        path: folders for the commands' PATH, in order, before `/usr/bin:/bin`.
        token: names the session in the process list, so that survivors of a crash can be found; no secret.
    """

    copy: Path
    shown_at: Path
    private: Path
    roots: tuple[Path, ...] = ()
    links: tuple[tuple[Path, str], ...] = ()
    in_source: tuple[Path, ...] = ()
    path: tuple[Path, ...] = ()
    token: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One command.

    Attributes:
        argv: what runs; `argv[0]` as registered.
        executable: absolute path, as seen inside, of the program that `argv[0]` names.
        cwd: folder relative to the root of the copy.
        environment: added to the fixed environment; for a runner's reporting variables.
        timeout_s: from the command's release to its kill.
        cancelled: asked several times a second while the command runs; once true, the command and all its descendants
            are ended and `run` raises `RunCancelledError`.
    """

    argv: tuple[str, ...]
    executable: str
    timeout_s: float
    cwd: str = "."
    environment: Mapping[str, str] = field(default_factory=dict)
    cancelled: Callable[[], bool] | None = None


@dataclass(frozen=True, slots=True)
class Captured:
    """What was read from one output stream: at most the limit, and the digest and count of all that was read."""

    data: bytes
    total_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one command together with the bytes that it printed."""

    outcome: Outcome
    stdout: Captured
    stderr: Captured


class ProcessWatch(Protocol):
    """Where a backend enters each process before it relies on its end: the core's residue register."""

    def started(self, pid: int) -> None:
        """A process exists now. Entered with its start time and the boot id, so that a recycled pid is told apart."""

    def ended(self, pid: int) -> None:
        """That process and all its descendants are proved gone."""


@runtime_checkable
class Enclosure(Protocol):
    """One working copy, confined. Not thread-safe: one command at a time."""

    def run(self, request: Request) -> Result:
        """Run one command to its end, or kill it at a limit.

        HOME, TMPDIR and shared memory are new for this command; stdin is /dev/null; the environment is built from
        empty; no network, no reading outside copy, roots and system runtime, no writing outside copy, HOME, TMPDIR.
        Returns within `timeout_s` + 2 s. Never raises for what the command does, and never runs it unconfined: what
        can't be set up is `sandbox-failed`, what can't be executed `could-not-start`.

        Raises:
            RunCancelledError: the request was cancelled; everything that it started was ended first.
        """

    def rewrite(self, path: str, data: bytes, mode: int) -> None:
        """Replace one file of the copy, in the same confinement and through no link.

        Args:
            path: relative POSIX path; every parent exists.
            data: exact new content.
            mode: exact permission bits.

        Raises:
            IsolationError: the file could not be written. The caller compares the copy afterwards in any case.
        """


@runtime_checkable
class Backend(Protocol):
    """An isolation plug-in. Construction is free of side effects and cheap."""

    name: str

    def availability(self) -> Availability:
        """Whether this machine could confine commands: looks for programs and kernel features, runs no check."""

    def enclose(
        self, workspace: Workspace, limits: Limits, processes: ProcessWatch
    ) -> AbstractContextManager[Enclosure]:
        """Open an enclosure; leaving the context ends whatever is left in it.

        Raises:
            IsolationError: this workspace can't be confined, with the root and the reason.
        """
