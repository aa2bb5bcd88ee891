"""Clearing one session's folder, by whoever holds its lock: the session itself at its end, or a sweep after a crash."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from firsthand.canonical import StrictJSONError, parse_strict
from firsthand.errors import StateError
from firsthand.files import RemovalError, remove_entry, remove_path
from firsthand.residues.identity import ProcessIdentity
from firsthand.residues.register import Entries, read_register
from firsthand.residues.residue import Residue, ResidueKind
from firsthand.residues.search import Traces
from firsthand.residues.state import StateDirectory
from firsthand.residues.survivors import Ending, end_survivors

OWNER: Final = "owner.json"
LOCK: Final = "lock"
REGISTER: Final = "register.jsonl"
OWN_FILES: Final = frozenset((OWNER, LOCK, REGISTER))

END_TIMEOUT_S: Final = 2.0

_FOLDER: Final = (
    os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
)

_KEEPING: Final = "the end of a process is not established, so its copy is kept"


def clear(state: StateDirectory, folder: Path, *, clean_kept: bool, timeout_s: float = END_TIMEOUT_S) -> list[Residue]:
    """End, destroy and remove what a session left. The caller holds the session's lock.

    1. Credentials are destroyed, before anything that can take time.
    2. Surviving processes are ended, and waited for.
    3. Credentials once more: a survivor may have written them anew.
    4. Trees go, except the kept ones, and except all of them while a process is not proved gone.
    5. The folder itself goes, under the state directory's lock, if nothing is left in it.

    Args:
        state: where the session lies.
        folder: the session's folder.
        clean_kept: remove kept copies too, once their processes are proved gone.
        timeout_s: for step 2.

    Returns:
        each thing that was found, with what became of it; nothing is raised for what resists.
    """
    session = folder.name
    entries = read_register(folder / REGISTER)
    found = _destroy_credentials(folder, entries)
    endings = end_survivors(traces_of(folder, entries), timeout_s=timeout_s)
    found += [_of_process(ending, session) for ending in endings]
    found += _destroy_credentials(folder, entries)
    gone = not any(ending.problem for ending in endings)
    for tree in trees_of(folder):
        reason = entries.kept.get(tree.name)
        if not gone:
            found.append(Residue("kept" if reason is not None else "tree", str(tree), session, "unknown", _KEEPING))
        elif reason is not None and not clean_kept:
            found.append(Residue("kept", str(tree), session, "kept", reason))
        else:
            found.append(_remove(tree, session, kept=reason))
    if all(residue.state in ("removed", "ended") for residue in found):
        try:
            with state.lock():
                found += _remove_folder(folder)
        except StateError as error:
            found.append(Residue("session", str(folder), session, "unknown", error.message))
    return found


def trees_of(folder: Path) -> list[Path]:
    """Everything in a session's folder but its own three files, sorted; entered or not."""
    try:
        return sorted(folder / name for name in os.listdir(folder) if name not in OWN_FILES)
    except FileNotFoundError:
        return []


def traces_of(folder: Path, entries: Entries) -> Traces:
    """What the session's processes are known by, from its register, its owner file and its place."""
    owner = owner_of(folder)
    tokens = (*entries.tokens, *((owner[1],) if owner else ()))
    return Traces(tuple(entries.running), tokens, f"/{folder.parent.name}/{folder.name}")


def credentials_of(folder: Path, entries: Entries) -> list[Path]:
    """The entered credentials that are there."""
    return [folder / path for path in dict.fromkeys(entries.credentials) if os.path.lexists(folder / path)]


def owner_of(folder: Path) -> tuple[ProcessIdentity, str] | None:
    """Who began the session, and its token; None when a crash came before that was written, and so before all else."""
    try:
        owner = parse_strict((folder / OWNER).read_bytes())
    except (OSError, StrictJSONError):
        return None
    match owner:
        case {"pid": int(pid), "start": str(start), "boot": str(boot), "token": str(token)} if len(token) >= 16:
            return ProcessIdentity(pid=pid, start=start, boot=boot), token
        case _:
            return None


def _destroy_credentials(folder: Path, entries: Entries) -> list[Residue]:
    found = []
    for path in dict.fromkeys(entries.credentials):
        try:
            if _destroy(folder, Path(path).parts):
                found.append(Residue("credential", str(folder / path), folder.name, "removed", "a credential copy"))
        except (OSError, RemovalError) as error:
            found.append(Residue("credential", str(folder / path), folder.name, "unknown", str(error)))
    return found


def _destroy(folder: Path, parts: tuple[str, ...]) -> bool:
    """Remove a credential, whether something was there. No link is followed on the way to it.

    A survivor may put a link in the way, to have us remove the user's own file of that name: each step is taken from
    the descriptor of the one before, and what is no folder, or can't be entered, is itself removed.
    """
    # Entered as below one of the session's trees; a register that says otherwise was tampered with.
    if len(parts) < 2 or not {"..", os.sep}.isdisjoint(parts):
        return False
    descriptor = os.open(folder, _FOLDER)
    try:
        for part in parts[:-1]:
            try:
                below = os.open(part, _FOLDER, dir_fd=descriptor)
            except FileNotFoundError:
                return False
            except OSError:
                remove_entry(descriptor, os.fsencode(part))
                return True
            os.close(descriptor)
            descriptor = below
        try:
            os.stat(parts[-1], dir_fd=descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return False
        remove_entry(descriptor, os.fsencode(parts[-1]))
        return True
    finally:
        os.close(descriptor)


def _of_process(ending: Ending, session: str) -> Residue:
    where = f"pid {ending.process.pid}"
    if ending.problem:
        return Residue("process", where, session, "unknown", ending.problem)
    return Residue("process", where, session, "ended", "it outlived its session")


def _remove(tree: Path, session: str, *, kept: str | None) -> Residue:
    kind: ResidueKind = "tree" if kept is None else "kept"
    try:
        remove_path(tree)
    except RemovalError as error:
        return Residue(kind, str(tree), session, "unknown", error.message)
    return Residue(kind, str(tree), session, "removed", kept or "a temporary tree")


def _remove_folder(folder: Path) -> list[Residue]:
    # The lock file last: as long as it stands, this session is claimed.
    for name in (REGISTER, OWNER, LOCK):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(folder / name)
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        return [Residue("session", str(folder), folder.name, "unknown", error.strerror or str(error))]
    return []
