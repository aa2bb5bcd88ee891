"""What a command sees, as options of `bwrap`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from firsthand.isolation.environment import fixed_environment
from firsthand.isolation.interface import Limits, Workspace

PYTHON: Final = "/usr/bin/python3"
OWN: Final = "/run/plainbox"
"""Where the supervisor, and the new content of a rewrite, lie inside."""

_HOME: Final = "/home/plainbox"
_USER: Final = "plainbox"
_UID_INSIDE: Final = 1000
_TMPDIR: Final = "/tmp"  # noqa: S108 - the sandbox's own
_ETC: Final = ("ld.so.cache", "ld.so.conf", "localtime")
_ETC_FOLDERS: Final = ("/etc/alternatives", "/etc/ssl", "/etc/pki", "/etc/ld.so.conf.d")


def prepare(private: Path, uid: int | None) -> None:
    """Write the few files of /etc that programs expect; accounts of the host are none of theirs."""
    # Modes for everyone: where the host is root, commands run under another uid. `private` itself is 0700.
    etc = private / "etc"
    (private / "own").mkdir(mode=0o755)
    etc.mkdir(mode=0o755)
    for folder in (private / "own", etc):
        folder.chmod(0o755)
    inside = _UID_INSIDE if uid is None else uid
    texts = {
        "passwd": f"root:x:0:0::/:/bin/false\n{_USER}:x:{inside}:{inside}::{_HOME}:/bin/sh\n",
        "group": f"root:x:0:\n{_USER}:x:{inside}:\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    }
    for name, text in texts.items():
        (etc / name).write_text(text)
    for name in _ETC:
        if os.path.isfile(f"/etc/{name}"):
            shutil.copyfile(f"/etc/{name}", etc / name)
    for path in _ETC_FOLDERS:
        if os.path.isdir(path):
            (etc / Path(path).name).mkdir(mode=0o755)
    for entry in etc.iterdir():
        entry.chmod(0o755 if entry.is_dir() else 0o644)


def options(workspace: Workspace, limits: Limits, uid: int | None, added: Mapping[str, str]) -> list[str]:
    """Everything between `bwrap` and the supervisor, descriptors apart.

    Args:
        workspace: `prepare` was called on its private folder.
        limits: the sizes of the scratch file systems.
        uid: what the supervisor will drop to where the host is root, else null.
        added: variables of the runner's.
    """
    runtime = [*_system(), "--ro-bind", str(workspace.private / "etc"), "/etc"]
    for folder in filter(os.path.isdir, _ETC_FOLDERS):
        runtime += ["--ro-bind", folder, folder]
    sealed = [word for place in ("/dev", "/proc", "/") for word in ("--remount-ro", place)]
    result = [*_namespaces(uid), *runtime, *_scratch(limits), *_shown(workspace), *sealed, "--chdir", "/"]
    variables = fixed_environment(
        path=[str(folder) for folder in workspace.path], home=_HOME, tmpdir=_TMPDIR, user=_USER, added=added
    )
    for name, value in variables.items():
        result += ["--setenv", name, value]
    return result


def _namespaces(uid: int | None) -> list[str]:
    """Each namespace by name. Process 1 is ours: its end is the end of every process inside."""
    result = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--hostname", _USER]
    result += ["--as-pid-1", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    if uid is None:
        return [*result, "--unshare-user", "--uid", str(_UID_INSIDE), "--gid", str(_UID_INSIDE)]
    for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
        result += ["--cap-add", capability]  # what dropping the uid takes; the command has none of them
    return result


def _system() -> list[str]:
    """The system's own runtime, read-only, in the shape that this system gives it."""
    result = ["--ro-bind", "/usr", "/usr"]
    for place in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        if os.path.islink(place):
            result += ["--symlink", os.readlink(place), place]
        elif os.path.isdir(place):
            result += ["--ro-bind", place, place]
    return result


def _scratch(limits: Limits) -> list[str]:
    """What is new for every command, since every command has mounts of its own."""
    result = ["--proc", "/proc", "--dev", "/dev", *_parents((Path(OWN), Path(_HOME)))]
    for place in (_HOME, _TMPDIR, "/dev/shm"):  # noqa: S108 - the sandbox's own
        result += ["--perms", "1777", "--size", str(limits.scratch_bytes), "--tmpfs", place]
    return result


def _shown(workspace: Workspace) -> list[str]:
    """Toolchains, then the copy at the source's place, then what the source holds beside it."""
    result = _parents((*workspace.roots, *(path for path, _ in workspace.links), workspace.shown_at))
    for root in workspace.roots:
        result += ["--ro-bind", str(root), str(root)]
    for path, aim in workspace.links:
        if not any(path.is_relative_to(place) for place in (Path("/usr"), *workspace.roots)):
            result += ["--symlink", aim, str(path)]
    result += ["--bind", str(workspace.copy), str(workspace.shown_at)]
    for folder in workspace.in_source:
        result += ["--ro-bind", str(folder), str(folder)]
    return [*result, "--ro-bind", str(workspace.private / "own"), OWN]


def _parents(paths: Iterable[Path]) -> list[str]:
    """Make the folders on the way, open to every uid; bwrap would make them for root alone."""
    folders = sorted({parent for path in paths for parent in path.parents if len(parent.parts) > 1})
    missing = [folder for folder in folders if folder.parts[1] not in ("usr", "bin", "sbin", "lib", "lib64", "etc")]
    return [word for folder in missing for word in ("--perms", "0755", "--dir", str(folder))]
