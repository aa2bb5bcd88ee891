"""From a check's argv[0] to everything that must be shown for it to run, without executing anything.

Links, script interpreters (`#!`), virtual environments (`pyvenv.cfg`) and version managers' stand-ins are followed by
reading. The folder shown for a program is the one above its `bin`. What an ordinary search of the host's own PATH
finds is shown by itself; what a project-controlled file leads to must be named in the definition, or a change to that
file could open any folder of the machine. Whatever can't be placed is an error that names the field to fill.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from firsthand.errors import FirsthandError
from firsthand.isolation.toolchain.shims import ShimError, look_up
from firsthand.records import Executable

FIELD: Final = "reviewVerification.toolchains"
_SYSTEM: Final = tuple(
    Path(path) for path in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/System", "/Library/Apple")
)
_MOST_STEPS: Final = 64
_SHEBANG_BYTES: Final = 4096
_PROGRAM_FOLDERS: Final = ("bin", "sbin", "Scripts")
_LONG_SHEBANG: Final = re.compile(rb"#!/bin/sh\n'''exec' \"?([^\"\s]+)")


class ToolchainError(FirsthandError):
    """A program of a check can't be placed, or what it needs may not be shown by itself."""

    default_code = "review_verification_definition"


@dataclass(frozen=True, slots=True)
class Toolchain:
    """One folder that commands may read and execute."""

    root: Path
    named: bool
    """Whether the definition names it."""


@dataclass(frozen=True, slots=True)
class Closure:
    """What one definition's checks need.

    Attributes:
        programs: for each argv[0]: the absolute path as seen inside, and the digest of the file that it leads to.
        toolchains: folders to show beyond the system's runtime, named ones first.
        links: symbolic links outside those folders that lead to them, as (path, what it points to).
        path: folders for PATH before the system's.
        in_source: dependency folders inside the source to show read-only; all of them named.
    """

    programs: Mapping[str, Executable]
    toolchains: tuple[Toolchain, ...]
    links: tuple[tuple[Path, str], ...]
    path: tuple[Path, ...]
    in_source: tuple[Path, ...]


def resolve(
    programs: Sequence[str],
    *,
    source: Path,
    registered: Iterable[str],
    toolchains: Sequence[Path],
    environment: Mapping[str, str],
    refuse: Callable[[Path], None],
) -> Closure:
    """Place every program.

    Args:
        programs: argv[0] of each check, as registered.
        source: the project's root, absolute and resolved.
        registered: the definition's files: the only ones of the source that commands find in their copy.
        toolchains: the roots that the definition names, absolute; existing folders.
        environment: the host's, for PATH and the version managers' variables. Relative entries of PATH and entries
            inside the source are passed over: they would let the project choose.
        refuse: raises for a root that may not be shown (the same rule as for named ones).

    Raises:
        ToolchainError: a program is not found, or needs a folder that must be named; with the field and the folder.
    """
    search = _Search(
        source=source,
        registered=frozenset(registered),
        named=tuple(toolchains),
        host_path=tuple(
            Path(entry)
            for entry in environment.get("PATH", "").split(os.pathsep)
            if os.path.isabs(entry)
            and not Path(entry).is_relative_to(source)
            and not Path(os.path.realpath(entry)).is_relative_to(source)
        ),
        environment=environment,
        refuse=refuse,
    )
    for root in toolchains:
        search.examine_prefix(root)
    placed = {program: search.place(program) for program in dict.fromkeys(programs)}
    return Closure(
        programs=placed,
        toolchains=(
            *(Toolchain(root, named=True) for root in search.named if not root.is_relative_to(source)),
            *(Toolchain(root, named=False) for root in search.derived),
        ),
        links=tuple(search.links.items()),
        path=tuple(search.path()),
        in_source=tuple(root for root in search.named if root.is_relative_to(source)),
    )


@dataclass
class _Search:
    """One resolution: what was given stays, what was derived grows."""

    source: Path
    registered: frozenset[str]
    named: tuple[Path, ...]
    host_path: tuple[Path, ...]
    environment: Mapping[str, str]
    refuse: Callable[[Path], None]
    derived: list[Path] = field(default_factory=list)
    links: dict[Path, str] = field(default_factory=dict)

    def path(self) -> list[Path]:
        """Folders with programs among the roots, in order."""
        folders = [root / name for root in (*self.named, *self.derived) for name in (*_PROGRAM_FOLDERS, ".bin")]
        return [folder for folder in folders if folder.is_dir()]

    def place(self, program: str) -> Executable:
        """One argv[0]: where it lies, and that all it needs can be seen there."""
        located = self._locate(program)
        file = self._follow(located, program, steps=0, by_project=False)
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return Executable(path=str(located), sha256=digest)

    def examine_prefix(self, prefix: Path) -> None:
        """A virtual environment needs the installation that it was made from."""
        home = _venv_home(prefix)
        if home is None:
            return
        base = home.resolve()
        base = base.parent if base.name in _PROGRAM_FOLDERS else base
        self._show(base, because=f"{prefix / 'pyvenv.cfg'} says home = {home}", by_project=self._of_project(prefix))

    def _locate(self, program: str) -> Path:
        """The path of a program as its caller would name it, links not followed."""
        if os.path.isabs(program):
            candidates = [Path(program)]
        elif "/" in program:
            candidates = [Path(os.path.normpath(self.source / program))]
        else:
            candidates = [
                folder / program for folder in (*self.path(), *self.host_path, Path("/usr/bin"), Path("/bin"))
            ]
        for candidate in candidates:
            # os.path's answer is False, and no error, for a file in a folder that is closed to this user.
            if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
                return self._behind_shim(candidate, program)
        raise ToolchainError(
            f"no executable {program!r} was found",
            where=FIELD,
            next_step=f"install it, or name the folder above its bin in {FIELD}",
        )

    def _behind_shim(self, candidate: Path, program: str) -> Path:
        try:
            shim = look_up(candidate, self.source, self.environment)
        except ShimError as error:
            raise ToolchainError(
                f"{program!r} can't be placed: {error}",
                where=FIELD,
                next_step=f"name the folder of the version to use in {FIELD}",
            ) from error
        if shim is None:
            return candidate
        real = shim.root / "bin" / candidate.name
        if not os.access(real, os.X_OK):
            raise ToolchainError(
                f"{candidate} stands for {real}, which is no executable",
                where=FIELD,
                next_step=f"install {candidate.name} for the version that {shim.chosen_by} chooses, or name another one"
                f" in {FIELD}",
            )
        self._show(shim.root.resolve(), because=f"{shim.chosen_by} chooses this version", by_project=shim.by_project)
        return real

    def _follow(self, located: Path, program: str, *, steps: int, by_project: bool) -> Path:
        """Make every link, virtual environment and interpreter on the way visible; the real file at the end.

        `by_project`: whether a file of the project led here. It stays true for everything further along the way.
        """
        if steps > _MOST_STEPS:
            raise ToolchainError(f"{program!r} leads in circles", where=FIELD, next_step="repair the links or scripts")
        by_project = by_project or self._of_project(located)
        file, passed = _walk(located)
        for link, aim in passed:
            by_project = by_project or self._of_project(link)
            prefix = link.parent.parent
            if link.parent.name in _PROGRAM_FOLDERS and _venv_home(prefix) is not None:
                self._show(prefix, because=f"{program!r} leads to the environment {prefix}", by_project=by_project)
                self.examine_prefix(prefix)
            elif not self._visible(link):
                self.links[link] = aim
        if self._of_project(file):
            relative = file.relative_to(self.source).as_posix()
            if relative not in self.registered and not any(file.is_relative_to(root) for root in self.named):
                raise ToolchainError(
                    f"{program!r} leads to {relative}, which is not registered",
                    where="reviewVerification.files",
                    next_step=f"add {relative} to files, or its dependency folder to {FIELD}",
                )
        else:
            prefix = file.parent.parent if file.parent.name in _PROGRAM_FOLDERS else file.parent
            self._show(prefix, because=f"{program!r} leads to {file}", by_project=by_project)
        try:
            interpreters = _interpreters(file)
        except OSError as error:
            raise ToolchainError(
                f"{program!r} needs {file}, which can't be read: {error.strerror}",
                where=FIELD,
                next_step="install what is missing, or correct the first line of the script that names it",
            ) from error
        for interpreter in interpreters:
            found = self._interpreter(interpreter, file)
            self._follow(found, program, steps=steps + 1, by_project=by_project or self._of_project(file))
        return file

    def _interpreter(self, interpreter: str, script: Path) -> Path:
        if os.path.isabs(interpreter):
            return Path(interpreter)
        # `env NAME` looks along the PATH inside, which the host's own PATH is no part of.
        for folder in (*self.path(), Path("/usr/bin"), Path("/bin")):
            if os.access(folder / interpreter, os.X_OK):
                return folder / interpreter
        raise ToolchainError(
            f"{script} starts {interpreter!r}, which is on no PATH inside the sandbox",
            where=FIELD,
            next_step=f"name the folder above the bin that holds {interpreter} in {FIELD}",
        )

    def _show(self, root: Path, *, because: str, by_project: bool) -> None:
        if self._visible(root):
            return
        if by_project:
            raise ToolchainError(
                f"{because}, and what a file of the project leads to is not shown by itself",
                where=FIELD,
                next_step=f'add "{root}" to {FIELD} if checks may read all of it',
            )
        self.refuse(root)
        self.derived.append(root)

    def _visible(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in (*_SYSTEM, *self.named, *self.derived))

    def _of_project(self, path: Path) -> bool:
        return path.is_relative_to(self.source)


def _walk(path: Path) -> tuple[Path, list[tuple[Path, str]]]:
    """Resolve a path link by link: the real file, and each link passed, at its own resolved place."""
    passed: list[tuple[Path, str]] = []
    resolved = Path("/")
    remaining = list(path.parts[1:])
    while remaining:
        name = remaining.pop(0)
        if name == "..":
            resolved = resolved.parent
            continue
        step = resolved / name
        if not step.is_symlink():
            resolved = step
            continue
        aim = os.readlink(step)
        passed.append((step, aim))
        if len(passed) > _MOST_STEPS:
            raise ToolchainError(f"{path} leads in circles", where=FIELD, next_step="repair the links")
        parts = Path(aim).parts
        if os.path.isabs(aim):
            resolved, parts = Path("/"), parts[1:]
        remaining = [*(part for part in parts if part != "."), *remaining]
    return resolved, passed


def _venv_home(prefix: Path) -> Path | None:
    """The `home` of a virtual environment's configuration; None where there is none."""
    try:
        with (prefix / "pyvenv.cfg").open("rb") as stream:
            text = stream.read(_SHEBANG_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key.strip().lower() == "home" and os.path.isabs(value.strip()):
            return Path(value.strip())
    return None


def _interpreters(file: Path) -> list[str]:
    """What a script's first line starts: an absolute path, for `env` also the name that it looks up; else nothing."""
    if not stat.S_ISREG(file.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    with file.open("rb") as stream:
        # The kernel ends the line at a NUL as well.
        head = stream.read(_SHEBANG_BYTES).partition(b"\0")[0]
    if not head.startswith(b"#!"):
        return []
    if long := _LONG_SHEBANG.match(head):
        return ["/bin/sh", os.fsdecode(long[1])]
    words = [os.fsdecode(word) for word in head.split(b"\n", 1)[0][2:].split()]
    if not words:
        return []
    if Path(words[0]).name != "env":
        return words[:1]
    named = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), None)
    return [words[0]] if named is None else [words[0], named]
