"""The backend: is bwrap here, and an enclosure around a working copy."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
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
from firsthand_bubblewrap import script, seccomp
from firsthand_bubblewrap.account import NoFreeAccountError, unused_uid
from firsthand_bubblewrap.enclosure import BubblewrapEnclosure
from firsthand_bubblewrap.launcher import find_launcher
from firsthand_bubblewrap.options import Account, options
from firsthand_bubblewrap.system import HOME, TMPDIR, prepare_etc, runtime_options

PRIORITY: Final = 100
_INSTALL: Final = (
    "install bubblewrap 0.8 or newer (Debian and Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap), or"
    ' pip install "firsthand-bubblewrap[bin]"'
)
_MADE_HERE: Final = ("/usr", TMPDIR, "/run", HOME, script.RUN, "/var", "/var/tmp")  # noqa: S108 # of the sandbox's own
_NOT_ENFORCED: Final = (
    "memory of all processes together: sampled every 100 ms, not capped by the kernel (no delegated cgroup is used)",
    "memory that is no process's own (memfd, System V, pipes, sockets): not counted",
    "size and number of files of the working copy: sampled every 100 ms, not capped by the kernel",
    "number of files in HOME, TMPDIR and shared memory: the kernel's default for a tmpfs",
)


class BubblewrapBackend:
    """Confines commands on Linux; see `firsthand.isolation.interface.Backend` for the contract."""

    name = "bubblewrap"

    def availability(self) -> Availability:
        """Looks for Linux, a seccomp program for this machine, the few programs needed, and bwrap."""
        if sys.platform != "linux":
            return Unavailable(f"bubblewrap needs Linux, this is {sys.platform}", "use the backend of this platform")
        machine = platform.machine()
        if machine not in seccomp.ARCHITECTURES:
            known = ", ".join(seccomp.ARCHITECTURES)
            return Unavailable(f"no seccomp program for {machine}", f"use a machine of one of these kinds: {known}")
        if missing := _missing_programs():
            return Unavailable(
                f"programs that stand between bwrap and the command are missing: {', '.join(missing)}",
                "install coreutils 8.31 or newer and util-linux",
            )
        launcher = find_launcher()
        if not isinstance(launcher, Launcher):
            return Unavailable(launcher.reason, _INSTALL)
        return Available(
            launcher=launcher,
            profile_digest=_profile_digest(machine),
            priority=PRIORITY,
            ends_all=True,
            not_enforced=_NOT_ENFORCED,
        )

    def enclose(
        self, workspace: Workspace, limits: Limits, processes: ProcessWatch
    ) -> AbstractContextManager[Enclosure]:
        """See `Backend.enclose`. As root the copy is given to an unused uid, which the commands run as."""
        return self._enclose(workspace, limits, processes)

    @contextmanager
    def _enclose(self, workspace: Workspace, limits: Limits, processes: ProcessWatch) -> Iterator[Enclosure]:
        launcher = find_launcher()
        if not isinstance(launcher, Launcher):
            raise IsolationError(launcher.reason, where="bwrap", next_step=_INSTALL)
        _refuse_unmountable(workspace)
        drop_to: int | None = None
        if os.geteuid() == 0:
            try:
                drop_to = unused_uid()
            except NoFreeAccountError as error:
                raise IsolationError(str(error), where="uid", next_step="run Firsthand as an ordinary user") from error
        account = Account(drop_to)
        try:
            if drop_to is not None:
                _give(workspace.copy, drop_to)
            prepare_etc(workspace.private / "etc", uid=account.inside, gid=account.inside)
            _prepare_run(workspace.private / "run")
        except OSError as error:
            raise IsolationError(
                f"the sandbox's own files can't be made: {error.strerror}",
                where=str(workspace.private),
                next_step="free some space for the state directory",
            ) from error
        yield BubblewrapEnclosure(
            launcher=launcher.path,
            runtime=runtime_options(),
            seccomp=seccomp.program(platform.machine()),
            workspace=workspace,
            limits=limits,
            account=account,
            processes=processes,
        )


def _prepare_run(folder: Path) -> None:
    """The gate's name and the unreadable guard, both of which `script` tells of."""
    folder.mkdir()
    # Whatever the umask: the dropped uid must get in.
    folder.chmod(0o755)
    (folder / script.GATE_COMM).symlink_to("/usr/bin/sh")
    guard = folder / script.GUARD_COMM
    shutil.copyfile("/usr/bin/cat", guard)
    guard.chmod(0o111)


def _missing_programs() -> list[str]:
    missing = [
        name for name in ("sh", "cat", "env", "prlimit", "chmod", "mv") if not os.access(f"/usr/bin/{name}", os.X_OK)
    ]
    if os.geteuid() == 0 and not os.access("/usr/bin/setpriv", os.X_OK):
        missing.append("setpriv")
    return missing


def _refuse_unmountable(workspace: Workspace) -> None:
    """A path that would cover what the sandbox itself is made of can't be shown."""
    for path in (workspace.shown_at, *workspace.roots):
        top = Path("/", *path.parts[1:2])
        if len(path.parts) < 2 or str(top) in ("/proc", "/dev", "/sys", "/etc") or str(path) in _MADE_HERE:
            raise IsolationError(
                "this folder can't be shown inside the sandbox, which has its own one there",
                where=str(path),
                next_step="move the project or the toolchain to another folder",
            )


def _give(folder: Path, uid: int) -> None:
    """Change the owner of everything in a fresh copy, through descriptors and following no link."""
    for _, folders, files, descriptor in os.fwalk(folder):
        for name in (*folders, *files):
            os.chown(name, uid, uid, dir_fd=descriptor, follow_symlinks=False)
        os.chown(descriptor, uid, uid)


def _profile_digest(machine: str) -> str:
    """SHA-256 over all that shapes the confinement, with stand-ins for what differs from run to run."""
    stand_in = Workspace(copy=Path("/copy"), shown_at=Path("/source/project"), private=Path("/private"))
    parts = [
        options(stand_in, Limits(), account, runtime_options(), environment={})
        + script.command_line(("/c",), cwd="/", limits=Limits(), drop_to=account.drop_to, token="")
        for account in (Account(None), Account(1))
    ]
    text = json.dumps(parts, ensure_ascii=True).encode()
    return hashlib.sha256(text + seccomp.program(machine)).hexdigest()
