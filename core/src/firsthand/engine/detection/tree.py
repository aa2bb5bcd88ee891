"""The files of a project that a definition may register."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from firsthand.definition import FILE_LIMIT_BYTES, DefinitionError, refuse_path

_SKIPPED_FOLDERS: Final = frozenset(
    {
        "__pycache__",
        "_build",
        "bower_components",
        "build",
        "coverage",
        "dist",
        "htmlcov",
        "node_modules",
        "out",
        "site-packages",
        "target",
        "vendor",
        "venv",
    }
)
_SKIPPED_SUFFIXES: Final = (".egg-info", ".dist-info")
_MOST_SEEN: Final = 20_000


@dataclass(frozen=True, slots=True)
class Tree:
    """What was found below a project's root.

    Attributes:
        files: relative POSIX paths with their sizes in bytes, sorted; only what a definition accepts.
        dependencies: dependency folders inside the project that checks may need to read.
        virtual_environments: those of them that are Python's.
    """

    files: dict[str, int]
    dependencies: tuple[Path, ...]
    virtual_environments: tuple[Path, ...]

    def names(self, *endings: str) -> list[str]:
        """Files with one of these endings."""
        return [path for path in self.files if path.endswith(endings)]

    def has(self, path: str) -> bool:
        """Whether this exact path is there."""
        return path in self.files


def look(root: Path, *, apart: Sequence[Path] = ()) -> Tree:
    """Walk a project: no link followed, nothing executed, at most 20,000 entries.

    Passed over: folders that hold dependencies, builds and caches, folders and files whose names begin with a dot (but
    for cargo's configuration, which names vendored crates), the paths in `apart`, and all that a definition would
    refuse by name, kind or size.
    """
    files: dict[str, int] = {}
    dependencies: list[Path] = []
    environments: list[Path] = []
    for seen, (entry, relative) in enumerate(_entries(root)):
        if seen >= _MOST_SEEN:
            break
        if entry.is_dir(follow_symlinks=False):
            if _is_environment(entry):
                environments.append(Path(entry.path))
            elif entry.name in ("node_modules", "vendor") and "/" not in relative:
                dependencies.append(Path(entry.path))
        elif Path(entry.path) not in apart and _registrable(entry, relative):
            files[relative] = entry.stat(follow_symlinks=False).st_size
    files.update(_cargo_configuration(root))
    return Tree(dict(sorted(files.items())), tuple(sorted(dependencies)), tuple(sorted(environments)))


def _entries(root: Path) -> Iterator[tuple[os.DirEntry[str], str]]:
    pending = [(os.fspath(root), "")]
    while pending:
        folder, below = pending.pop(0)
        try:
            listing = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in listing:
            relative = below + entry.name
            yield entry, relative
            if entry.is_dir(follow_symlinks=False) and not _skipped(entry):
                pending.append((entry.path, f"{relative}/"))


def _cargo_configuration(root: Path) -> Iterator[tuple[str, int]]:
    """Without it cargo does not find vendored crates; what else lies in that folder may be a credential."""
    folder = root / ".cargo"
    if folder.is_symlink():
        return
    try:
        listing = list(os.scandir(folder))
    except OSError:
        return
    for entry in listing:
        if entry.name == "config.toml" and _registrable(entry, ".cargo/config.toml"):
            yield ".cargo/config.toml", entry.stat(follow_symlinks=False).st_size


def _skipped(entry: os.DirEntry[str]) -> bool:
    return (
        entry.name.startswith(".")
        or entry.name in _SKIPPED_FOLDERS
        or entry.name.endswith(_SKIPPED_SUFFIXES)
        or _is_environment(entry)
    )


def _is_environment(folder: os.DirEntry[str]) -> bool:
    # os.path's answer is False, and no error, for a folder that is closed to this user.
    return os.path.isfile(os.path.join(folder.path, "pyvenv.cfg"))


def _registrable(entry: os.DirEntry[str], relative: str) -> bool:
    if PurePosixPath(relative).name.startswith("."):
        return False
    try:
        refuse_path(relative, "files")
    except DefinitionError:
        return False
    status = entry.stat(follow_symlinks=False)
    mode = status.st_mode
    plain = stat.S_ISREG(mode) and not mode & (stat.S_ISUID | stat.S_ISGID)
    return plain and status.st_size <= FILE_LIMIT_BYTES
