"""What the machine must have, and the enclosure's beginning."""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
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
from firsthand_plainbox import seccomp
from firsthand_plainbox.options import PYTHON, prepare

LAUNCHER: Final = "/usr/bin/bwrap"
PRIORITY: Final = 10
"""Below the shipped backend's: an example should not be chosen by itself where that one passes."""

_NOT_ENFORCED: Final = (
    "memory of all processes together",
    "size and number of files of the working copy between two samples, 100 ms apart",
)
_FIRST_UID: Final = 0x6000_0000
_UIDS: Final = 0x0FFF_0000


class PlainboxBackend:
    """Confines commands on Linux by bwrap. Constructing one does nothing."""

    name = "plainbox"

    def availability(self) -> Availability:
        """Look for what is needed. The only program that runs is `bwrap --version`."""
        if sys.platform != "linux":
            return Unavailable(f"plainbox needs Linux, this is {sys.platform}", "use this platform's own backend")
        if platform.machine() not in seccomp.ARCHITECTURES:
            return Unavailable(f"no seccomp program for {platform.machine()}", "use an x86-64 or 64-bit ARM machine")
        for program, package in ((LAUNCHER, "bubblewrap"), (PYTHON, "python3")):
            if not os.access(program, os.X_OK):
                return Unavailable(f"{program} is missing", f"install your distribution's package `{package}`")
        launcher = Path(LAUNCHER).resolve()
        return Available(
            launcher=Launcher(path=str(launcher), version=_version(launcher), sha256=_digest(launcher.read_bytes())),
            profile_digest=_profile_digest(),
            priority=PRIORITY,
            ends_all=True,
            not_enforced=_NOT_ENFORCED,
        )

    def enclose(
        self, workspace: Workspace, limits: Limits, processes: ProcessWatch
    ) -> AbstractContextManager[Enclosure]:
        """Open an enclosure around a working copy."""
        return _enclosed(workspace, limits, processes)


@contextmanager
def _enclosed(workspace: Workspace, limits: Limits, processes: ProcessWatch) -> Iterator[Enclosure]:
    # Linux only, like all that follows; this module must import anywhere, so that `availability` can say so.
    from firsthand_plainbox.enclosure import Box, PlainboxEnclosure, own  # noqa: PLC0415

    uid = _unused_uid() if os.geteuid() == 0 else None
    try:
        prepare(workspace.private, uid)
        supervisor = workspace.private / "own" / "supervisor.py"
        shutil.copyfile(Path(__file__).with_name("supervisor.py"), supervisor)
        supervisor.chmod(0o644)
    except OSError as error:
        raise IsolationError(
            f"the sandbox can't be prepared: {error.strerror}",
            where=str(workspace.private),
            next_step="free some space for the state directory",
        ) from error
    if uid is not None:
        own(workspace.copy, uid)
    # Each command has a sandbox of its own and `run` ends it, so there is nothing left to end afterwards.
    yield PlainboxEnclosure(Box(LAUNCHER, seccomp.program(platform.machine()), workspace, limits, uid), processes)


def _unused_uid() -> int:
    """A uid that has no account and no process, so that its limits and its files are this sandbox's alone."""
    import pwd  # noqa: PLC0415 - POSIX only

    while True:
        uid = _FIRST_UID + secrets.randbelow(_UIDS)
        try:
            pwd.getpwuid(uid)
        except KeyError:
            if not any(entry.stat().st_uid == uid for entry in os.scandir("/proc") if entry.name.isdecimal()):
                return uid


def _profile_digest() -> str:
    """Over everything that shapes the confinement: all of this package's code."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return _digest(b"\0".join(file.name.encode() + b"\0" + file.read_bytes() for file in files))


def _version(launcher: Path) -> str:
    done = subprocess.run([str(launcher), "--version"], env={}, capture_output=True, check=False, timeout=10)
    return done.stdout.decode("ascii", "replace").strip().rpartition(" ")[2]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
