"""What a path is, whatever it is called: device and inode. Case, bind mounts and links don't hide a folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

Identity: TypeAlias = tuple[int, int]
"""Device and inode."""


def identity(path: Path) -> Identity | None:
    """The identity of what a path leads to; None when nothing is there or it may not be seen.

    Raises:
        OSError: another failure of the operating system.
    """
    try:
        found = os.stat(path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP):
            return None
        raise
    return found.st_dev, found.st_ino


def identities(paths: Iterable[Path]) -> frozenset[Identity]:
    """The identities of those paths that are there."""
    return frozenset(found for path in paths if (found := identity(path)) is not None)


def chain(path: Path) -> frozenset[Identity]:
    """A path and all folders above it, links resolved; those not there yet are left out."""
    resolved = Path(os.path.realpath(path))
    return identities((resolved, *resolved.parents))
