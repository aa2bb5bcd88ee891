"""bwrap's options for one command: a pure function of the workspace, the limits and the account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from firsthand.isolation.environment import fixed_environment
from firsthand.isolation.interface import Limits, Workspace
from firsthand_bubblewrap.script import RUN
from firsthand_bubblewrap.system import HOME, HOSTNAME, MERGED, TMPDIR, USER

_USER_INSIDE: Final = 1000
_SYSTEM: Final = tuple(PurePosixPath("/", name) for name in ("usr", *MERGED))
_MADE_HERE: Final = tuple(PurePosixPath(path) for path in ("/", "/etc", "/proc", "/dev", "/run", HOME, TMPDIR, RUN))


@dataclass(frozen=True, slots=True)
class Account:
    """Who the command is.

    Attributes:
        drop_to: uid and gid on the host that the gate takes; None where the host is no root, so that a user namespace
            maps the host's own uid.
    """

    drop_to: int | None

    @property
    def inside(self) -> int:
        """Uid and gid as the command sees them."""
        return _USER_INSIDE if self.drop_to is None else self.drop_to


def options(
    workspace: Workspace,
    limits: Limits,
    account: Account,
    runtime: list[str],
    *,
    environment: Mapping[str, str],
) -> list[str]:
    """Everything that stands before `--` on bwrap's command line, descriptors apart.

    Args:
        workspace: what is shown; `workspace.private` holds the prepared `etc` and `run` folders.
        limits: sizes of the three scratch file systems.
        account: whether a user namespace or a dropped uid confines the command.
        runtime: options of `system.runtime_options`.
        environment: added to the fixed variables.
    """
    result = _namespaces(account)
    result += ["--ro-bind", str(workspace.private / "etc"), "/etc"]
    result += runtime
    result += ["--perms", "0755", "--dir", "/run", "--ro-bind", str(workspace.private / "run"), RUN]
    result += ["--proc", "/proc", "--dev", "/dev"]
    for scratch in ("/dev/shm", TMPDIR, HOME):  # noqa: S108 # the sandbox's own
        result += ["--perms", "1777", "--size", str(limits.scratch_bytes), "--tmpfs", scratch]
    result += ["--perms", "0755", "--dir", "/var", "--symlink", TMPDIR, "/var/tmp"]  # noqa: S108

    roots = [root for root in workspace.roots if not _in_system(root)]
    for parent in _missing_parents([*roots, *(path for path, _ in workspace.links), workspace.shown_at]):
        result += ["--perms", "0755", "--dir", str(parent)]
    for root in roots:
        result += ["--ro-bind", str(root), str(root)]
    for path, aim in workspace.links:
        if not _in_system(path) and not any(path.is_relative_to(root) for root in roots):
            result += ["--symlink", aim, str(path)]
    # Last, so that the copy hides the source even where a root or a scratch folder lies around it.
    result += ["--bind", str(workspace.copy), str(workspace.shown_at)]
    for folder in workspace.in_source:
        result += ["--ro-bind", str(folder), str(folder)]
    for mount in ("/dev", "/", "/proc"):
        result += ["--remount-ro", mount]

    result += ["--chdir", "/"]
    variables = fixed_environment(
        path=[str(folder) for folder in workspace.path], home=HOME, tmpdir=TMPDIR, user=USER, added=environment
    )
    for name, value in variables.items():
        result += ["--setenv", name, value]
    return result


def _namespaces(account: Account) -> list[str]:
    # Each namespace by name: `--unshare-all` only tries the user namespace.
    result = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    # No `--die-with-parent`: when the host dies in the first milliseconds, it kills bwrap's outer half alone, and the
    # inner half, which has no such signal yet, waits for it for ever. The guard pipe covers every instant.
    result += ["--hostname", HOSTNAME, "--as-pid-1", "--new-session", "--clearenv"]
    result += ["--cap-drop", "ALL"]
    if account.drop_to is None:
        inside = str(account.inside)
        result += ["--unshare-user", "--uid", inside, "--gid", inside, "--disable-userns"]
    else:
        # What setpriv needs to become the dropped uid; it leaves none of them.
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
            result += ["--cap-add", capability]
    return result


def _in_system(path: Path) -> bool:
    return any(path.is_relative_to(system) for system in _SYSTEM)


def _missing_parents(paths: list[Path]) -> list[Path]:
    """Folders on the way to a mount that nothing else makes; bwrap would make them 0700."""
    parents = {parent for path in paths for parent in path.parents}
    present = {parent for parent in parents if PurePosixPath(parent) in _MADE_HERE or _in_system(parent)}
    return sorted(parents - present)
