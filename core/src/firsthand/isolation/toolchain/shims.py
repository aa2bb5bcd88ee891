"""Version managers' stand-ins: a program on PATH that only looks up which real program to start.

The stand-in alone fails inside a sandbox, where the manager's home is not shown, and executing it would execute what a
project's files say. So the real program is looked up here by the manager's own files.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_LONGEST_BYTES: Final = 4096
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+/-]{0,100}")


@dataclass(frozen=True, slots=True)
class Shim:
    """What a stand-in stands for.

    Attributes:
        root: folder of the version that would be started.
        chosen_by: the file or variable that chose this version.
        by_project: whether that file belongs to the project, so that the project's author decides what is shown.
    """

    root: Path
    chosen_by: str
    by_project: bool


class ShimError(ValueError):
    """A stand-in was recognised and what it stands for could not be found; the message says why."""


def look_up(program: Path, source: Path, environment: Mapping[str, str]) -> Shim | None:
    """The version behind a stand-in of pyenv or rustup; None when the program is none.

    Args:
        program: absolute path as found on PATH, links not followed.
        source: the project, whose own version files count as project-controlled.
        environment: the host's, for PYENV_VERSION and RUSTUP_TOOLCHAIN.

    Raises:
        ShimError: a stand-in of an unknown manager, or a version that is not installed.
    """
    if program.parent.name == "shims":
        manager = program.parent.parent
        if (manager / "versions").is_dir():
            return _pyenv(manager, source, environment)
        raise ShimError(f"{program} is a stand-in of a version manager that is not known here")
    if program.resolve().name == "rustup" and program.name != "rustup":
        return _rustup(program.parent.parent, source, environment)
    return None


def _pyenv(manager: Path, source: Path, environment: Mapping[str, str]) -> Shim:
    chosen, by, by_project = environment.get("PYENV_VERSION", "").split(":")[0], "PYENV_VERSION", False
    if not chosen:
        for file in (source / ".python-version", manager / "version"):
            words = _first_word(file)
            if words:
                chosen, by, by_project = words, str(file), file.parent == source
                break
    if not chosen or chosen == "system":
        raise ShimError(f"pyenv at {manager} names no installed version")
    return _installed(manager / "versions", chosen, by, by_project=by_project)


def _rustup(cargo_home: Path, source: Path, environment: Mapping[str, str]) -> Shim:
    home = Path(environment.get("RUSTUP_HOME") or cargo_home.parent / ".rustup")
    chosen, by, by_project = environment.get("RUSTUP_TOOLCHAIN", ""), "RUSTUP_TOOLCHAIN", False
    if not chosen:
        for name in ("rust-toolchain.toml", "rust-toolchain"):
            if words := _project_toolchain(source / name):
                chosen, by, by_project = words, str(source / name), True
                break
    if not chosen:
        by = str(home / "settings.toml")
        chosen = _setting(home / "settings.toml", "default_toolchain")
    if not chosen:
        raise ShimError(f"rustup at {home} names no default toolchain")
    return _installed(home / "toolchains", chosen, by, by_project=by_project)


def _installed(versions: Path, chosen: str, by: str, *, by_project: bool) -> Shim:
    if not _VERSION.fullmatch(chosen) or ".." in chosen:
        raise ShimError(f"{by} names {chosen[:80]!r}, which is no version")
    exact = versions / chosen
    # A short name (3.12, stable) stands for the one installed version that it begins.
    candidates = [exact] if exact.is_dir() else sorted(versions.glob(f"{chosen}[.-]*"))
    if len(candidates) != 1:
        raise ShimError(f"{by} names {chosen}, for which {versions} holds {len(candidates)} versions")
    return Shim(candidates[0], by, by_project)


def _project_toolchain(file: Path) -> str:
    text = _bounded(file)
    if "[toolchain]" not in text:
        return _first_word(file) if file.suffix != ".toml" else ""
    try:
        channel = tomllib.loads(text).get("toolchain", {}).get("channel", "")
    except tomllib.TOMLDecodeError as error:
        raise ShimError(f"{file} can't be read: {error}") from error
    return channel if isinstance(channel, str) else ""


def _setting(file: Path, key: str) -> str:
    try:
        value = tomllib.loads(_bounded(file)).get(key, "")
    except tomllib.TOMLDecodeError:
        return ""
    return value if isinstance(value, str) else ""


def _first_word(file: Path) -> str:
    for line in _bounded(file).splitlines():
        words = line.partition("#")[0].split()
        if words:
            return words[0]
    return ""


def _bounded(file: Path) -> str:
    try:
        if not file.is_file():
            return ""
        with file.open("rb") as stream:
            return stream.read(_LONGEST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
