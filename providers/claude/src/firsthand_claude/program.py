"""Which CLI is driven: where it is found, and what it says of itself."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from firsthand.review.interface import Host, Incapable, ProgramIdentity

CLI_NAME: Final = "claude"
BUNDLE: Final = "claude_agent_sdk"
LAST_WITHOUT_FLAGS: Final = (2, 1, 197)
"""The newest version known to lack `--restricted` and `--permission-prompts`; the help of newer ones is read."""
FLAGS_SINCE: Final = ("--restricted", "--permission-prompts")
INSTALL: Final = "install firsthand-claude[cli], which brings a CLI that fits, or give the path of a newer one"

_VERSION: Final = re.compile(r"^(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:[-+][0-9A-Za-z.+-]{1,64})?(?= |$)")
_LISTED: Final = re.compile(r"(?<![\w-])--[a-z][A-Za-z0-9-]*")

Ask = Callable[[Path, str], str]
"""Runs the program with one option and gives its standard output; raises `SilentError` when there is none to give."""


class SilentError(Exception):
    """The program did not answer; the message says why."""


def find_program(host: Host) -> Path | Incapable:
    """The CLI: the path that the user gave, else PATH's `claude`, else the one that `claude-agent-sdk` bundles.

    The library is located, never imported. Links are resolved: what is digested is what runs.
    """
    if host.program is not None:
        found = host.program.absolute()
        if not _runs(found):
            return Incapable(f"the Claude CLI given as {host.program} is no program that can be run", INSTALL)
        return found.resolve()
    on_path = shutil.which(CLI_NAME, path=host.environment.get("PATH") or os.devnull)
    if on_path is not None:
        return Path(on_path).resolve()
    bundled = bundled_program()
    if bundled is not None:
        return bundled.resolve()
    return Incapable("the Claude CLI is not installed: not on PATH, and claude-agent-sdk is not there either", INSTALL)


def bundled_program() -> Path | None:
    """The binary inside `claude-agent-sdk`, or None."""
    try:
        spec = find_spec(BUNDLE)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    name = f"{CLI_NAME}.exe" if sys.platform == "win32" else CLI_NAME
    found = Path(spec.origin).parent / "_bundled" / name
    return found if _runs(found) else None


def identify(path: Path, ask: Ask) -> ProgramIdentity | Incapable:
    """Version and SHA-256 of the CLI; a version that is known to be too old is refused by name."""
    try:
        said = ask(path, "--version").strip()
    except SilentError as error:
        return Incapable(f"{path} does not tell its version: {error}", INSTALL)
    match = _VERSION.match(said)
    if match is None:
        return Incapable(f"{path} is no Claude CLI: it calls its version {said[:80]!r}", INSTALL)
    version = match.group(0)
    if tuple(map(int, match.groups())) <= LAST_WITHOUT_FLAGS:
        lacking = " and ".join(FLAGS_SINCE)
        return Incapable(f"the Claude CLI {version} at {path} is too old: it lacks {lacking}", INSTALL)
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return Incapable(f"{path} can't be read: {error.strerror}", INSTALL)
    return ProgramIdentity(path=str(path), version=version, sha256=digest)


def lacking_flags(path: Path, ask: Ask, needed: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the flags that the CLI's own help does not list.

    Raises:
        SilentError: it gives no help.
    """
    listed = set(_LISTED.findall(ask(path, "--help")))
    return tuple(flag for flag in needed if flag not in listed)


@dataclass(frozen=True, slots=True)
class _Seen:
    stat: tuple[int, ...]
    identity: ProgramIdentity


class Programs:
    """Identities of programs, each digested once as long as its file stays the same: the CLI has 400 MB.

    Sameness is by device, inode, size, mtime and ctime. Not thread-safe.
    """

    def __init__(self) -> None:
        self._seen: dict[Path, _Seen] = {}

    def identity(self, host: Host, ask: Ask) -> ProgramIdentity | Incapable:
        """Find and identify the CLI."""
        path = find_program(host)
        if isinstance(path, Incapable):
            return path
        before = _stat(path)
        seen = self._seen.get(path)
        if seen is not None and seen.stat == before:
            return seen.identity
        identity = identify(path, ask)
        if isinstance(identity, Incapable):
            return identity
        if before is None or _stat(path) != before:
            return Incapable(f"{path} changed while it was looked at", "try again when its update is through")
        self._seen[path] = _Seen(before, identity)
        return identity


def _stat(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
