"""Settings that an administrator placed on the machine: they outrank every flag, so a review with them is refused."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from firsthand.review.interface import Incapable


def managed_folders(platform: str = sys.platform) -> tuple[Path, ...]:
    """Where the vendor's CLI looks for managed settings on this platform."""
    if platform == "darwin":
        return (Path("/Library/Application Support/ClaudeCode"),)
    if platform == "win32":
        return (Path("C:/Program Files/ClaudeCode"), Path("C:/ProgramData/ClaudeCode"))
    return (Path("/etc/claude-code"),)


def managed_refusal(folders: Iterable[Path]) -> Incapable | None:
    """A refusal when one of the folders is there, or may be: hooks and servers from it can't be switched off.

    An empty folder is no reason; one that can't be looked into is.
    """
    for folder in folders:
        try:
            found = sorted(os.listdir(folder))
        except FileNotFoundError:
            continue
        except OSError as error:
            found = [f"can't be listed: {error.strerror}"]
        if found:
            return Incapable(
                f"managed settings of the Claude CLI are installed on this machine in {folder} ({found[0]}): "
                "they apply whatever flags are given, and could add hooks, servers and tools",
                f"review on a machine without {folder}",
            )
    return None
