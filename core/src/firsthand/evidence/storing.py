"""Sealed files on disk: private from the first byte, whole or not there at all."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from firsthand.evidence.errors import EvidenceError
from firsthand.evidence.sealing import LIMIT_BYTES

_WRITE_FLAGS: Final = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_READ_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
)


def write_sealed(path: Path, raw: bytes, *, replace: bool = False) -> None:
    """Put a sealed file at `path` (mode 0600): complete and on the disk when this returns, else not there.

    Args:
        path: its folder exists. A symbolic link at the path is never followed.
        raw: what `seal` returned.
        replace: take the place of what is at the path; otherwise that is refused, since evidence is written once.

    Raises:
        EvidenceError: something is at the path already, or it can't be written.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        if not replace and _write_unnamed(path, raw):
            return
        write_new_private(draft, raw)
        try:
            if replace:
                os.replace(draft, path)
            else:
                os.link(draft, path)  # unlike a rename, a link never takes a taken place
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft)
        _sync_folder(path.parent)
    except FileExistsError as error:
        raise EvidenceError(
            "something is there already; evidence is never written over",
            where=str(path),
            next_step="name another file with --out",
        ) from error
    except OSError as error:
        raise _unusable(path, error) from error


def _write_unnamed(path: Path, raw: bytes) -> bool:
    """Write a file that has no name until it is whole, so that a kill leaves no draft; False where that can't be done.

    Raises:
        OSError: something is at the path already, or it can't be written.
    """
    if not hasattr(os, "O_TMPFILE"):
        return False
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            descriptor = os.open(".", os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o600, dir_fd=folder)
        except OSError:
            return False  # a file system without nameless files; whatever else it is, the usual way will tell
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(descriptor, 0o600)  # a umask may have taken more away
            stream.write(raw)
            stream.flush()
            os.fsync(descriptor)
            try:
                os.link(f"/proc/self/fd/{descriptor}", path.name, dst_dir_fd=folder, follow_symlinks=True)
            except FileNotFoundError:
                return False  # no /proc here
        os.fsync(folder)
        return True
    finally:
        os.close(folder)


def read_sealed(path: Path) -> bytes:
    """The bytes of a sealed file, to be verified.

    Raises:
        EvidenceError: no regular file, longer than `LIMIT_BYTES` (then nothing is read), or unreadable.
    """
    try:
        descriptor = os.open(path, _READ_FLAGS)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise _refused(path, "not a regular file")
            if status.st_size > LIMIT_BYTES:
                raise _refused(path, f"{status.st_size} bytes, at most {LIMIT_BYTES} are accepted")
            with os.fdopen(descriptor, "rb", closefd=False) as stream:
                raw = stream.read(LIMIT_BYTES + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unusable(path, error) from error
    if len(raw) > LIMIT_BYTES:
        raise _refused(path, f"it grew beyond {LIMIT_BYTES} bytes while it was read")
    return raw


def write_new_private(path: Path, content: bytes) -> None:
    """Write a file that did not exist, mode 0600 from the first byte, and wait until it is on the disk.

    A failure after the file was made removes it again.

    Raises:
        FileExistsError: something is at the path, a dangling link included.
        OSError: it can't be written.
    """
    descriptor = os.open(path, _WRITE_FLAGS, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            if hasattr(os, "fchmod"):
                os.fchmod(stream.fileno(), 0o600)  # a umask may have taken more away
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise


def _sync_folder(folder: Path) -> None:
    """Make the new name itself durable, where the system lets a folder be opened."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | getattr(os, "O_CLOEXEC", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refused(path: Path, what: str) -> EvidenceError:
    return EvidenceError(what, where=str(path), next_step="name the sealed file that firsthand wrote")


def _unusable(path: Path, error: OSError) -> EvidenceError:
    reason = error.strerror or str(error)
    return EvidenceError(f"can't be used: {reason}", where=str(path), next_step="check the path and its permissions")
