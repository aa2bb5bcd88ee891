"""What dead sessions left: listing it, and doing away with it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from firsthand.residues.clearing import (
    END_TIMEOUT_S,
    LOCK,
    REGISTER,
    clear,
    credentials_of,
    owner_of,
    traces_of,
    trees_of,
)
from firsthand.residues.locks import try_lock
from firsthand.residues.register import read_register
from firsthand.residues.residue import Residue
from firsthand.residues.state import StateDirectory
from firsthand.residues.survivors import find_survivors, is_alive

_ID: Final = re.compile(r"[0-9a-f]{16}")
_HANDOVER_S: Final = 1.0
_HANDOVER_STEP_S: Final = 0.005
_FOREIGN: Final = "not made by Firsthand; left alone"


def sweep(state: StateDirectory, *, clean_kept: bool, timeout_s: float = END_TIMEOUT_S) -> list[Residue]:
    """Clear every dead session: called when the program starts, and by `residues --clean`.

    A session is dead when its lock is free. Its lock is taken first, so a living session, and one that another sweep
    is at work on, is never touched. See `clear` for the steps.

    Args:
        state: the state directory.
        clean_kept: remove kept copies too, once their processes are proved gone.
        timeout_s: how long to wait, for each session, for killed processes to be gone.

    Returns:
        each thing that was found, with what became of it.

    Raises:
        StateError: the state directory's lock can't be had.
    """
    found: list[Residue] = []
    for name in _names(state):
        folder = state.sessions / name
        if not _is_session(folder):
            found.append(Residue("entry", str(folder), name, "unknown", _FOREIGN))
            continue
        with _claimed(state, folder) as claimed:
            if claimed:
                found += clear(state, folder, clean_kept=clean_kept, timeout_s=timeout_s)
    return found


def list_residues(state: StateDirectory) -> list[Residue]:
    """What dead sessions left, as it is now. Changes nothing; living sessions are not shown.

    Raises:
        StateError: the state directory's lock can't be had.
    """
    found: list[Residue] = []
    for name in _names(state):
        folder = state.sessions / name
        if not _is_session(folder):
            found.append(Residue("entry", str(folder), name, "unknown", _FOREIGN))
        elif _is_dead(state, folder):
            found += _list_session(folder)
    return found


def _list_session(folder: Path) -> list[Residue]:
    session = folder.name
    entries = read_register(folder / REGISTER)
    found = [
        Residue("process", f"pid {process.pid}", session, "left", "it outlived its session")
        for process in find_survivors(traces_of(folder, entries))
    ]
    found += [
        Residue("credential", str(path), session, "left", "a credential copy")
        for path in credentials_of(folder, entries)
    ]
    for tree in trees_of(folder):
        reason = entries.kept.get(tree.name)
        if reason is None:
            found.append(Residue("tree", str(tree), session, "left", "a temporary tree"))
        else:
            found.append(Residue("kept", str(tree), session, "kept", reason))
    return found or [Residue("session", str(folder), session, "left", "an empty session")]


def _is_session(folder: Path) -> bool:
    if _ID.fullmatch(folder.name) is None or folder.is_symlink():
        return False
    return folder.is_dir() or not folder.exists()  # it may be gone since it was listed


def _names(state: StateDirectory) -> list[str]:
    return sorted(os.listdir(state.sessions))


@contextmanager
def _claimed(state: StateDirectory, folder: Path) -> Iterator[bool]:
    """Take a dead session's lock, if it is one.

    A program that was being started when its session was killed holds the lock for another moment (see
    `tie_to_memory`): a lock whose owner is gone is waited for.
    """
    deadline = time.monotonic() + _HANDOVER_S
    while (lock := _try_claim(state, folder)) is None:
        owner = owner_of(folder)
        if owner is None or is_alive(owner[0]) or time.monotonic() >= deadline:
            yield False
            return
        time.sleep(_HANDOVER_STEP_S)
    try:
        yield True
    finally:
        os.close(lock)


def _try_claim(state: StateDirectory, folder: Path) -> int | None:
    # Under the state directory's lock, because sessions begin and end under it: none is seen half made or half gone.
    with state.lock():
        try:
            return try_lock(folder / LOCK)
        except FileNotFoundError:
            return None  # cleared since it was listed


def _is_dead(state: StateDirectory, folder: Path) -> bool:
    with state.lock():
        try:
            lock = try_lock(folder / LOCK, create=False)
        except FileNotFoundError:
            return folder.is_dir()  # a crash came between the folder and its lock
    if lock is None:
        return False
    os.close(lock)
    return True
