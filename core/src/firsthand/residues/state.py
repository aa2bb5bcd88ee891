"""The private state directory: one folder of ours alone, outside every source."""

from __future__ import annotations

import os
import stat
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from firsthand.errors import StateError
from firsthand.residues.locks import held
from firsthand.residues.private import open_private

PRIVATE_FOLDER: Final = 0o700
MARKER: Final = "firsthand-state"
MARKER_TEXT: Final = b"1\n"
FOLDERS: Final = ("sessions", "evidence", "cache", "ledger")

_LOCK_TIMEOUT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class StateDirectory:
    """A state directory that was found to be private. Make one with `open`."""

    path: Path
    """Absolute; the folders above it are resolved, and it is no link itself."""

    @property
    def sessions(self) -> Path:
        """One folder for each run of the program that is going on, or that left something."""
        return self.path / "sessions"

    @property
    def evidence(self) -> Path:
        """Where evidence goes that was given no other place."""
        return self.path / "evidence"

    @property
    def cache(self) -> Path:
        """What can be lost without harm: battery reports, digests of toolchains."""
        return self.path / "cache"

    @property
    def ledger(self) -> Path:
        """Which definition each run is bound to, and what became of its rounds."""
        return self.path / "ledger"

    @classmethod
    def open(cls, path: Path | None = None, *, source: Path | None = None) -> Self:
        """Find or make a state directory, and check that nobody else can look into it or steer it.

        1. It is not the source, not inside it, and does not contain it.
        2. It is a folder, no link, owned by this user, closed to group and others (0700).
        3. It is marked as ours, or it is new or empty and becomes marked: sweeping removes folders in here, so a
           folder with somebody's files in it is never taken for a state directory.
        4. So are its folders `sessions`, `evidence`, `cache`, `ledger`.

        Ownership and mode have no such meaning on Windows and are not checked there.

        Args:
            path: the folder; the platform's place for user state when null.
            source: the user's tree.

        Raises:
            StateError: for each breach, with what to do about it.
        """
        if path is None:
            import platformdirs  # noqa: PLC0415 - many commands are given a folder and never need it

            try:
                path = Path(platformdirs.user_state_dir("firsthand", appauthor=False))
            except RuntimeError as error:
                raise StateError(
                    "this user has no home to keep private state in",
                    where="HOME",
                    next_step="name a folder with --state",
                ) from error
        absolute = Path(os.path.abspath(path))
        place = absolute.parent.resolve() / absolute.name
        if source is not None:
            _refuse_overlap(place, source)
        _make_folders(place)
        _check_private(place)
        _check_marked(place)
        for name in FOLDERS:
            _make_folders(place / name)
            _check_private(place / name)
        return cls(path=place)

    def lock(self) -> AbstractContextManager[None]:
        """Hold the directory's lock: while sessions begin, end or are claimed. Keep it short.

        Raises:
            StateError: another process holds it for 30 s.
        """
        return held(self.path / "lock", timeout_s=_LOCK_TIMEOUT_S)


def _refuse_overlap(place: Path, source: Path) -> None:
    tree = source.resolve()
    # By identity as well as by name: a bind mount or another case of the same name is the same place.
    inside = [folder for folder in (place, *place.parents) if folder == tree or _same(folder, tree)]
    around = [folder for folder in tree.parents if _same(folder, place)]
    if inside or around:
        relation = "inside the source" if inside else "around the source"
        raise StateError(
            f"the state directory lies {relation} {source}",
            where=str(place),
            next_step="name a folder outside the source with --state",
        )


def _same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _make_folders(place: Path) -> None:
    missing = [folder for folder in (place, *place.parents) if not os.path.lexists(folder)]
    for folder in reversed(missing):
        try:
            os.mkdir(folder, PRIVATE_FOLDER)
            if os.name == "posix":
                # The umask may have taken away bits of the owner's.
                os.chmod(folder, PRIVATE_FOLDER)
        except FileExistsError:
            continue  # another process made it a moment ago; what it is, is checked next
        except OSError as error:
            raise StateError(
                f"the state directory can't be made: {error.strerror}",
                where=str(folder),
                next_step="name a folder that can be made with --state",
            ) from error


def _check_private(place: Path) -> None:
    try:
        found = os.lstat(place)
    except OSError as error:
        raise StateError(
            f"the state directory can't be looked at: {error.strerror}",
            where=str(place),
            next_step="name another folder with --state",
        ) from error
    if stat.S_ISLNK(found.st_mode):
        problem, next_step = "is a symbolic link", "name the folder that it leads to with --state"
    elif not stat.S_ISDIR(found.st_mode):
        problem, next_step = "is not a folder", "name a folder with --state"
    elif os.name != "posix":
        return
    elif found.st_uid != os.geteuid():
        problem = f"belongs to uid {found.st_uid}, not to uid {os.geteuid()}"
        next_step = "name a folder of your own with --state"
    elif found.st_mode & 0o777 != PRIVATE_FOLDER:
        problem = f"has mode {stat.S_IMODE(found.st_mode):04o}, not 0700"
        next_step = f"look for what others may have put there, then run: chmod 700 '{place}'"
    else:
        return
    raise StateError(f"the state directory {problem}", where=str(place), next_step=next_step)


def _check_marked(place: Path) -> None:
    marker = place / MARKER
    try:
        if not os.path.lexists(marker):
            # Looked for again when the folder is not empty: another process may just have marked it.
            if any(place.iterdir()) and not os.path.lexists(marker):
                raise StateError(
                    "the folder holds other files and is no state directory",
                    where=str(place),
                    next_step="name a new or empty folder with --state",
                )
            _write_marker(marker)
        with open(marker, "rb") as file:
            text = file.read(64)
        if not text:
            _write_marker(marker)  # a crash came between its making and its writing
            text = MARKER_TEXT
    except OSError as error:
        raise StateError(
            f"the state directory can't be used: {error.strerror}", where=str(marker), next_step="repair what it names"
        ) from error
    if text != MARKER_TEXT:
        raise StateError(
            "the state directory was made by another version of Firsthand",
            where=str(marker),
            next_step="use that version, or name another folder with --state",
        )


def _write_marker(marker: Path) -> None:
    descriptor = open_private(marker, os.O_WRONLY | os.O_CREAT)
    try:
        os.write(descriptor, MARKER_TEXT)
    finally:
        os.close(descriptor)
