"""Processes of a reviewer, as the contract with a provider knows them: what is launched, streamed and ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, runtime_checkable

MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Launch:
    """One process to start.

    Attributes:
        argv: the command line; `argv[0]` is an absolute path. Holds no secret.
        environment: all of it: nothing is inherited.
        cwd: an absolute folder.
        stdin: given at the start; then the input ends.
        timeout_s: a limit below what is left of the budget, or None.
        line_limit_bytes: longest line of standard output; a longer one ends the process.
        output_limit_bytes: all of standard output together.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: Path
    stdin: bytes = b""
    timeout_s: float | None = None
    line_limit_bytes: int = 16 * MIB
    output_limit_bytes: int = 64 * MIB


@dataclass(frozen=True, slots=True)
class Exit:
    """How a launched process ended.

    Attributes:
        kind: `could-not-start`: nothing ran. `timed-out`, `output-limit`, `transcript-limit`, `cancelled`: the host
            ended it, for that reason.
        code: with `exited`, its exit status.
        signal: with `signalled`, the number.
        detail: for `could-not-start`, and of a limit, which.
        stderr: the last 64 KiB of standard error.
        clean: whether the end of its whole process group is established.
    """

    kind: Literal[
        "exited", "signalled", "could-not-start", "timed-out", "output-limit", "transcript-limit", "cancelled"
    ]
    code: int | None = None
    signal: int | None = None
    detail: str = ""
    stderr: bytes = b""
    clean: bool = True


class Process(Protocol):
    """A launched process. Not thread-safe, but for `stop`."""

    pid: int

    def lines(self) -> Iterator[bytes]:
        """Each line of standard output as it arrives, without its line end; records end at LF bytes only.

        What follows the last LF is given as a last line. Ends when the output ends or a limit is reached; never raises
        for what the process does. Memory: at most one line.
        """

    def wait(self) -> Exit:
        """Wait until the process and its group are gone; what it still prints is dropped. Safe to call again.

        A process that closes its output and lives on is ended after 2 s.
        """

    def stop(self) -> None:
        """Ask it to end (SIGTERM), then end its whole group; returns at once. Safe from any thread, and again."""


@runtime_checkable
class Launcher(Protocol):
    """Where a provider's processes come from. The host's own; entered into the residue register.

    Attributes:
        level: `plain`: a process like any other of this user. `confined`: it sees its private folder, its program and
            what the endpoint names, and reaches one address.
    """

    level: Literal["plain", "confined"]

    def start(self, launch: Launch) -> AbstractContextManager[Process]:
        """Start a process in a group of its own; leaving the context ends whatever is left of the group.

        A program that can't be started is an `Exit` of the process, not an exception.

        Raises:
            ReviewError: it can't be entered into the register, or `argv[0]` or `cwd` is not absolute; nothing ran.
        """

    def credential(self, path: Path) -> Path:
        """Enter a file that will hold a credential, before it exists; the caller then makes it exclusively, mode 0600.

        Args:
            path: inside the private folder of the dispatch.

        Returns:
            the same path.

        Raises:
            FirsthandError: it can't be entered; the credential must not be written.
        """
