"""Exclusive file locks that end with their holder, however it ends."""

from __future__ import annotations

import mmap
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from firsthand.errors import StateError
from firsthand.residues.private import open_private

_PAUSE_S: Final = 0.01


def try_lock(path: Path, *, create: bool = True) -> int | None:
    """Lock a file for this process and give its descriptor, or None while somebody else holds it.

    The lock lasts until the descriptor is closed, by whatever end of the process: that makes it a proof of life that
    no recycled pid can forge. A file that was removed while we opened it counts as held: its remover is at work.

    Args:
        path: the lock file.
        create: make the file, mode 0600, if it is not there.

    Raises:
        OSError: it can't be opened (`FileNotFoundError` without `create`).
    """
    descriptor = open_private(path, os.O_RDWR | os.O_CREAT if create else os.O_RDWR)
    if _locked(descriptor):
        try:
            if os.stat(path).st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        except FileNotFoundError:
            pass
    os.close(descriptor)
    return None


@contextmanager
def held(path: Path, *, timeout_s: float) -> Iterator[None]:
    """Hold a lock for the length of a block.

    Raises:
        StateError: somebody held it for longer than `timeout_s`, or the file can't be opened.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            descriptor = try_lock(path)
        except OSError as error:
            raise StateError(
                f"the lock can't be opened: {error.strerror}",
                where=str(path),
                next_step="repair what the message names",
            ) from error
        if descriptor is not None:
            break
        if time.monotonic() >= deadline:
            raise StateError(
                f"another process has held the state directory for {timeout_s:g} s",
                where=str(path),
                next_step="wait for it, or end it if it is stopped",
            )
        time.sleep(_PAUSE_S)
    try:
        yield
    finally:
        os.close(descriptor)


def tie_to_memory(descriptor: int) -> mmap.mmap | None:
    """Let this process's memory hold the lock too, until the result is closed.

    A program that is being started is, for a moment, a copy of this process that has closed its descriptors and has
    not yet become the other program. If this process is killed just then, the copy goes on and becomes it. While it
    still has this process's memory, it now holds the lock, so nobody can take the lock and miss it.
    """
    if os.name != "posix":
        return None
    os.write(descriptor, b"\n")  # an empty file can't be mapped
    return mmap.mmap(descriptor, 1, prot=mmap.PROT_READ)


def _locked(descriptor: int) -> bool:
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - Windows only

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl  # noqa: PLC0415 - POSIX only

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
