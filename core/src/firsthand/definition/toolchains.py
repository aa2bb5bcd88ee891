"""Which folders commands may never be shown, whether the definition names them or a program's links lead there.

Folders are compared by device and inode, not by spelling: case, bind mounts and links don't hide one.
Source: the contract, Run definition.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from firsthand.definition.credentials import CREDENTIAL_FOLDERS, credential_file, credential_folder
from firsthand.definition.reasons import DefinitionError
from firsthand.files import Identity, chain, identities, identity

WIDE_FOLDERS: Final[tuple[str, ...]] = (
    "/",
    "/Applications",
    "/Library",
    "/System",
    "/Users",
    "/Volumes",
    "/home",
    "/lost+found",
    "/media",
    "/mnt",
    "/opt",
    "/private",
    "/private/tmp",
    "/private/var",
    "/root",
    "/snap",
    "/srv",
    "/tmp",  # noqa: S108 - a list of what is refused
    "/var",
    "/var/home",
    "/var/lib",
    "/var/root",
    "/var/tmp",  # noqa: S108
)
"""Refused themselves, not what lies in them."""

SYSTEM_FOLDERS: Final[tuple[str, ...]] = (
    "/boot",
    "/dev",
    "/etc",
    "/private/etc",
    "/private/var/db",
    "/private/var/run",
    "/proc",
    "/run",
    "/sys",
    "/var/run",
)
"""Refused with all that lies in them."""

HOME_PARENTS: Final[tuple[str, ...]] = ("/Users", "/home", "/var/home")
"""Whatever lies directly in one of these is a home."""

DEPENDENCY_FOLDERS: Final = frozenset({".venv", "venv", "node_modules", "vendor", "__pypackages__", ".bundle"})
"""Names of folders inside the source that may be shown read-only at their place."""

ENTRIES_LIMIT: Final = 500_000

# One look-up for each of very many folders, before the list is gone through.
_CREDENTIAL_ENDS: Final = frozenset(entry.rpartition("/")[2] for entry in CREDENTIAL_FOLDERS)


def home_folders(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The homes of this user: what HOME says and what the user database says."""
    homes = [environ[name] for name in ("HOME", "USERPROFILE") if environ.get(name)]
    try:
        import pwd  # noqa: PLC0415 - POSIX only

        homes.append(pwd.getpwuid(os.geteuid()).pw_dir)
    except (ImportError, KeyError):
        pass
    return tuple(dict.fromkeys(Path(home) for home in homes if os.path.isabs(home)))


def refuse_root(
    path: Path,
    *,
    source: Path,
    state_dir: Path | None,
    homes: Sequence[Path],
    field: str = "reviewVerification.toolchains",
) -> None:
    """Refuse a folder that commands may not be shown; named in the definition or derived from a program alike.

    Looks through the whole folder (names and kinds only, up to 500000 entries), executes and opens nothing in it.

    Args:
        path: absolute; links outside the source may lie on the way, and what they lead to passes the same rules.
        source: the resolved root of the definition.
        state_dir: the private state directory, or None where there is none.
        homes: see `home_folders`; whatever lies directly in /home or /Users counts as a home as well.
        field: what the refusal names.

    Raises:
        DefinitionError: with the rule that it breaks.
    """
    if not path.is_absolute() or ".." in path.parts:
        raise DefinitionError(field, "toolchain-not-absolute", str(path))
    try:
        resolved = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise DefinitionError(field, "toolchain-missing", str(path)) from error
    own = identity(resolved)
    if own is None:
        raise DefinitionError(field, "toolchain-missing", str(path))
    if not resolved.is_dir():
        raise DefinitionError(field, "toolchain-not-a-folder", str(path))
    _refuse_place(resolved, own, state_dir, homes, field)
    _refuse_relation_to_source(path, resolved, own, source, field)
    _refuse_content(resolved, field)


def _refuse_place(resolved: Path, own: Identity, state_dir: Path | None, homes: Sequence[Path], field: str) -> None:
    shown = str(resolved)
    if own in identities(Path(folder) for folder in WIDE_FOLDERS):
        raise DefinitionError(field, "toolchain-too-wide", shown)
    own_chain = chain(resolved)
    if own_chain & identities(Path(folder) for folder in SYSTEM_FOLDERS):
        raise DefinitionError(field, "toolchain-system", shown)
    # A home of `/` (service accounts have it) is covered by the refusal of `/`.
    real_homes = [home for home in homes if home != Path("/")]
    in_home_parent = identity(resolved.parent) in identities(Path(folder) for folder in HOME_PARENTS)
    if in_home_parent or any(own in chain(home) for home in real_homes):
        raise DefinitionError(field, "toolchain-contains-home", shown)
    if state_dir is not None and (own in chain(state_dir) or identity(state_dir) in own_chain):
        raise DefinitionError(field, "toolchain-contains-state", shown)


def _refuse_relation_to_source(path: Path, resolved: Path, own: Identity, source: Path, field: str) -> None:
    if own in chain(source):
        raise DefinitionError(field, "toolchain-contains-source", str(resolved))
    lexical = Path(os.path.normpath(path))
    named_inside = lexical.is_relative_to(source)
    lies_inside = identity(source) in chain(resolved)
    if named_inside != lies_inside or (lies_inside and lexical != resolved):
        raise DefinitionError(field, "toolchain-link", f"{path} leads to {resolved}")
    if lies_inside and resolved.name not in DEPENDENCY_FOLDERS:
        raise DefinitionError(field, "toolchain-inside-source", str(resolved))


def _refuse_content(root: Path, field: str) -> None:
    listed = credential_folder(root.parts)
    if listed is not None:
        raise DefinitionError(field, "toolchain-holds-credentials", str(root))
    seen = 0
    pending: list[tuple[str, tuple[str, ...]]] = [(str(root), ())]
    while pending:
        folder, names = pending.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    if seen > ENTRIES_LIMIT:
                        raise DefinitionError(field, "toolchain-too-large", str(root))
                    if entry.is_dir(follow_symlinks=False):
                        # Only the end of the chain is new; the longest entry of the list has three names.
                        below = (*names, entry.name)[-3:]
                        if entry.name.casefold() in _CREDENTIAL_ENDS and credential_folder(below) is not None:
                            raise DefinitionError(field, "toolchain-holds-credentials", entry.path)
                        pending.append((entry.path, below))
                    elif not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                        raise DefinitionError(field, _special(entry), entry.path)
                    elif not names and credential_file(entry.name, patterns=False) is not None:
                        raise DefinitionError(field, "toolchain-holds-credentials", entry.path)
        except OSError as error:
            raise DefinitionError(field, "toolchain-unreadable", f"{folder}: {error.strerror}") from error


def _special(entry: os.DirEntry[str]) -> str:
    mode = entry.stat(follow_symlinks=False).st_mode
    return "toolchain-holds-socket" if stat.S_ISSOCK(mode) else "toolchain-holds-special-file"
