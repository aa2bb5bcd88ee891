"""Binding a run's id to the first definition that is used under it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

from firsthand.canonical import JSONValue, StrictJSONError, canonical_bytes, parse_strict
from firsthand.errors import FirsthandError, StateError
from firsthand.residues.private import open_private
from firsthand.residues.state import StateDirectory

_LIMIT_BYTES: Final = 1024 * 1024


class RunBindingError(FirsthandError):
    """Another definition is already bound to this run's id."""

    default_code = "review_verification_definition_changed"


def bind_run(state: StateDirectory, run_id: str, fingerprint: str) -> None:
    """Bind a run's id to a definition's fingerprint, or find that it is bound to this one already.

    The first wins, also among processes that come at once; the binding is on the disk when this returns, whole or not
    at all. Stored as `runs/` + SHA-256 of the id.

    Args:
        state: the state directory.
        run_id: as the definition gives it.
        fingerprint: of the definition, 64 hexadecimal digits.

    Raises:
        RunBindingError: the id is bound to another fingerprint.
        StateError: the binding can't be read or written; a damaged one is kept for inspection.
    """
    wanted: JSONValue = {"fingerprint": fingerprint, "runId": run_id}
    place = state.runs / hashlib.sha256(run_id.encode()).hexdigest()
    with state.lock():
        bound = _read(place)
        if bound is None:
            _write(place, canonical_bytes(wanted))
            return
    if bound != wanted:
        raise RunBindingError(
            f"the run {run_id!r} was begun with another definition (fingerprint {_fingerprint(bound)[:12]}…, now "
            f"{fingerprint[:12]}…)",
            where="runId",
            next_step="restore the definition that the run was begun with, or choose a new runId",
        )


def _fingerprint(bound: JSONValue) -> str:
    return str(bound["fingerprint"]) if isinstance(bound, dict) else ""


def _read(place: Path) -> JSONValue:
    try:
        with open(place, "rb") as file:
            value = parse_strict(file.read(_LIMIT_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, StrictJSONError) as error:
        raise _damaged(place) from error
    if not isinstance(value, dict) or set(value) != {"fingerprint", "runId"}:
        raise _damaged(place)
    return value


def _write(place: Path, raw: bytes) -> None:
    """Whole or not at all, also through a power cut: written beside, synced, renamed, the folder synced."""
    beside = place.with_suffix(".new")
    try:
        # What an earlier crash left under this name is of no use; the state directory's lock makes it ours.
        beside.unlink(missing_ok=True)
        descriptor = open_private(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            os.write(descriptor, raw)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(beside, place)
        if os.name == "posix":
            folder = os.open(place.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise StateError(
            f"the run can't be bound to its definition: {error.strerror}",
            where=str(place),
            next_step="free some space for the state directory",
        ) from error


def _damaged(place: Path) -> StateError:
    return StateError(
        "the binding of a run to its definition can't be read",
        where=str(place),
        next_step="look at the file; move it away only if you know that the run's definition has not changed",
    )
