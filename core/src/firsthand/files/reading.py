"""Reading one file below a folder, such that no outside byte can enter, whatever is swapped meanwhile.

Every component is opened relative to the descriptor of the folder before it and never through a link; the kind is
judged on the open descriptor before a byte is read; what was read counts only if the file is the same after the read.
Source: the contract, Snapshot.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from firsthand.files.refusal import FileReason, FileRefusedError

# Flags that a platform lacks are 0 there: Windows has none of them, macOS has no O_PATH.
NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
CLOSE_ON_EXEC: Final = getattr(os, "O_CLOEXEC", 0)
FOLDER_ONLY: Final = getattr(os, "O_DIRECTORY", 0) | NO_FOLLOW | CLOSE_ON_EXEC
# O_PATH walks through a folder that may be searched but not listed, as any other program can.
PASS_THROUGH: Final = FOLDER_ONLY | getattr(os, "O_PATH", os.O_RDONLY)
LIST_FOLDER: Final = FOLDER_ONLY | os.O_RDONLY
READ_LEAF: Final = (
    os.O_RDONLY
    | NO_FOLLOW
    | CLOSE_ON_EXEC
    | getattr(os, "O_NONBLOCK", 0)  # a FIFO swapped in answers at once
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)

Parts = tuple[bytes, ...]
"""The components of a relative path, as the bytes that the file system holds."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """One regular file as it was read: exact bytes, permission bits, hard links of its inode."""

    data: bytes
    mode: int
    links: int


def split_path(path: str) -> tuple[Parts, bytes]:
    """The folders and the name of a relative POSIX path, as UTF-8 whatever the locale says.

    The path's own rules (no `..`, no empty segment) are the definition's; here a component is only never a link.

    Raises:
        FileRefusedError: not UTF-8 encodable, or a component that would leave the folder.
    """
    try:
        *folders, name = path.encode("utf-8").split(b"/")
    except UnicodeEncodeError as error:
        raise FileRefusedError(path, "unreadable", "the path holds a lone surrogate") from error
    if any(part in (b"", b".", b"..") or b"\0" in part for part in (*folders, name)):
        raise FileRefusedError(path, "unreadable", "not a plain relative path")
    return tuple(folders), name


def open_folder(path: Path) -> int:
    """A descriptor of the folder that files are read below. The caller closes it.

    Links above the last component are followed: the path is the operator's own. The last one may be no link.

    Raises:
        FileRefusedError: it is not a folder, not there, not readable, or the platform can't.
    """
    if os.open not in os.supports_dir_fd:
        raise FileRefusedError(str(path), "unsupported-platform")
    try:
        return os.open(path, LIST_FOLDER)
    except OSError as error:
        reason: FileReason = "permission" if error.errno in (errno.EACCES, errno.EPERM) else "not-a-directory"
        raise FileRefusedError(str(path), reason, error.strerror or "") from error


class Cursor:
    """Walks below one folder, and keeps the folder that it reached last: files of one folder share its descriptor.

    Holds at most two descriptors of its own, however deep the path. Not thread-safe; several cursors may share a root,
    whose descriptor stays the caller's.
    """

    def __init__(self, root_fd: int) -> None:
        self._root_fd = root_fd
        self._parts: Parts = ()
        self._fd = root_fd

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder reached last."""
        if self._fd != self._root_fd:
            os.close(self._fd)
        self._fd, self._parts = self._root_fd, ()

    def at(self, parts: Parts) -> int | None:
        """The descriptor of a folder below the root, valid until the next call; None when it is truly absent.

        Raises:
            FileRefusedError: a component is a link, no folder, or may not be passed.
        """
        if parts == self._parts:
            return self._fd
        self.close()
        for depth, part in enumerate(parts):
            try:
                below = self.step(self._fd, part)
            except FileNotFoundError:
                self.close()
                return None
            except OSError as error:
                shown = os.fsdecode(b"/".join(parts[: depth + 1]))
                refusal = _explain(self._fd, part, shown, error, folder=True)
                self.close()
                raise refusal from error
            if self._fd != self._root_fd:
                os.close(self._fd)
            self._fd = below
        self._parts = parts
        return self._fd

    def step(self, folder_fd: int, part: bytes) -> int:
        """Open one folder inside another. Subclasses may make it, or repair its mode.

        Raises:
            OSError: as the operating system says; `at` explains it.
        """
        return os.open(part, PASS_THROUGH, dir_fd=folder_fd)

    def read(self, path: str, limit_bytes: int) -> FileContent | None:
        """Read one file below the root, or None when it, or a folder on the way to it, is truly absent.

        Raises:
            FileRefusedError: with the reason.
        """
        parts, name = split_path(path)
        folder_fd = self.at(parts)
        return None if folder_fd is None else read_leaf(folder_fd, name, limit_bytes, path)


def read_registered(root_fd: int, path: str, limit_bytes: int) -> FileContent | None:
    """Read one relative POSIX path below a root's descriptor; at most `limit_bytes + 1` bytes are read.

    Returns:
        The exact bytes with permission bits and link count, or None for true absence (ENOENT only).

    Raises:
        FileRefusedError: with the reason; nothing that is not a regular file is ever read from.
    """
    with Cursor(root_fd) as cursor:
        return cursor.read(path, limit_bytes)


def read_leaf(folder_fd: int, name: bytes, limit_bytes: int, shown: str) -> FileContent | None:
    """Read one name in one folder; `shown` is how refusals call it. Otherwise as `read_registered`."""
    try:
        # 1. Look before opening: opening alone can have effects on a device.
        found = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _explain(folder_fd, name, shown, error, folder=False) from error
    if not stat.S_ISREG(found.st_mode):
        raise FileRefusedError(shown, _kind_of(folder_fd, name, found.st_mode))
    try:
        # 2. Open without following, whatever stands there by now.
        fd = os.open(name, READ_LEAF, dir_fd=folder_fd)
    except FileNotFoundError as error:
        raise FileRefusedError(shown, "changed-during-read", "it vanished") from error
    except OSError as error:
        raise _explain(folder_fd, name, shown, error, folder=False) from error
    try:
        return read_open_file(fd, limit_bytes, shown)
    finally:
        os.close(fd)


def read_open_file(fd: int, limit_bytes: int, shown: str) -> FileContent:
    """Read a whole regular file from its descriptor's start; the descriptor stays open.

    Raises:
        FileRefusedError: not a regular file, a set-id bit, more than `limit_bytes`, or changed meanwhile.
    """
    # 3. The kind is judged on what was opened, before any read.
    before = os.fstat(fd)
    if not stat.S_ISREG(before.st_mode):
        raise FileRefusedError(shown, _kind(before.st_mode))
    if before.st_mode & (stat.S_ISUID | stat.S_ISGID):
        raise FileRefusedError(shown, "set-id", f"mode {stat.S_IMODE(before.st_mode):04o}")
    if before.st_size > limit_bytes:
        raise FileRefusedError(shown, "too-large", f"{before.st_size} bytes, at most {limit_bytes}")
    # 4. At most one byte beyond what the file claims to hold: that byte proves that it grew.
    try:
        data = read_up_to(fd, before.st_size + 1)
    except OSError as error:
        raise FileRefusedError(shown, "unreadable", error.strerror or "") from error
    # 5. The same file, unchanged, before and after; ctime also moves with mode, owner and link count.
    after = os.fstat(fd)
    if len(data) != before.st_size or _identity(before) != _identity(after):
        raise FileRefusedError(shown, "changed-during-read")
    return FileContent(data=data, mode=stat.S_IMODE(before.st_mode), links=before.st_nlink)


def read_up_to(fd: int, count: int) -> bytes:
    """Read until the end of the file or `count` bytes, whichever comes first."""
    data = os.read(fd, count)
    if len(data) == count:
        return data
    pieces = [data]
    read = len(data)
    while read < count:
        piece = os.read(fd, count - read)
        if not piece:
            break
        pieces.append(piece)
        read += len(piece)
    return data if len(pieces) == 1 else b"".join(pieces)


def read_path(path: Path, limit_bytes: int) -> FileContent | None:
    """Read one file that the operator named by path, on every platform.

    Folders on the way may be links; the file itself must be a regular file and no link. Otherwise as
    `read_registered`.
    """
    shown = str(path)
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileRefusedError(shown, _reason(error), error.strerror or "") from error
    if not stat.S_ISREG(found.st_mode):
        raise FileRefusedError(shown, _kind_of(None, os.fsencode(path), found.st_mode))
    try:
        fd = os.open(path, READ_LEAF)
    except OSError as error:
        raise FileRefusedError(shown, _reason(error), error.strerror or "") from error
    try:
        return read_open_file(fd, limit_bytes, shown)
    finally:
        os.close(fd)


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev, found.st_mode)


def _kind(mode: int) -> FileReason:
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISFIFO(mode):
        return "fifo"
    if stat.S_ISSOCK(mode):
        return "socket"
    if stat.S_ISLNK(mode):
        return "symlink"
    return "device"


def _kind_of(folder_fd: int | None, name: bytes, mode: int) -> FileReason:
    """Why something that is no regular file is refused. A link is followed once, to say where it leads, never read."""
    if not stat.S_ISLNK(mode):
        return _kind(mode)
    try:
        os.stat(name, dir_fd=folder_fd)
    except FileNotFoundError:
        return "dangling-link"
    except OSError as error:
        return "link-loop" if error.errno == errno.ELOOP else "symlink"
    return "symlink"


def _explain(folder_fd: int, name: bytes, shown: str, error: OSError, *, folder: bool) -> FileRefusedError:
    """Turn a failed open into its reason by looking at what stands there; the refusal itself is settled already."""
    reason = _reason(error)
    if reason not in ("permission", "name-too-long"):
        with contextlib.suppress(OSError):
            mode = os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_mode
            reason = _kind_of(folder_fd, name, mode) if stat.S_ISLNK(mode) else _misplaced(reason, mode, folder=folder)
    return FileRefusedError(shown, reason, error.strerror or "")


def _misplaced(reason: FileReason, mode: int, *, folder: bool) -> FileReason:
    """What is wrong with something that is no link; what looks right by now was swapped meanwhile."""
    if folder:
        return "changed-during-read" if stat.S_ISDIR(mode) else "not-a-directory"
    if not stat.S_ISREG(mode):
        return _kind(mode)
    return "changed-during-read" if reason in ("symlink", "not-a-directory") else reason


def _reason(error: OSError) -> FileReason:
    match error.errno:
        case errno.EACCES | errno.EPERM:
            return "permission"
        case errno.ENAMETOOLONG:
            return "name-too-long"
        case errno.ELOOP:
            return "symlink"
        case errno.ENOTDIR:
            return "not-a-directory"
        case errno.ENXIO | errno.ENODEV:
            return "device"
        case _:
            return "unreadable"
