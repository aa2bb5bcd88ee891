"""Removing what a command left, through descriptors: no link followed, nothing outside touched.

Works on trees that resist: folders without any permission, chains deeper than any path can name. Descriptors and
memory stay bounded: below a fixed depth a folder is moved up to the top of the tree and handled there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import sys
from pathlib import Path
from typing import Final

from firsthand.files.reading import FOLDER_ONLY, LIST_FOLDER
from firsthand.files.refusal import RemovalError

DEEPEST_OPEN: Final = 24
"""Folders held open at once, one descriptor each."""

_PASSES: Final = 64
"""How often a folder is emptied again because something filled it meanwhile, before it counts as held by a writer."""

_MOUNTED: Final = "something is mounted there"


def remove_path(path: Path) -> None:
    """Remove whatever stands at a path, a whole tree or one file; nothing there is fine. The parent is trusted.

    Raises:
        RemovalError: something resisted; what was reached before it is gone.
    """
    try:
        parent_fd = os.open(path.parent, LIST_FOLDER & ~getattr(os, "O_NOFOLLOW", 0))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise RemovalError(str(path), error.strerror or str(error)) from error
    try:
        remove_entry(parent_fd, os.fsencode(path.name))
    finally:
        os.close(parent_fd)


def remove_entry(parent_fd: int, name: bytes) -> None:
    """Remove one entry of an open folder: a tree, a file, a link (never what it leads to). Absent is fine.

    Raises:
        RemovalError: something resisted; what was reached before it is gone.
    """
    try:
        for _ in range(_PASSES):
            if _remove_empty(parent_fd, name):
                return
            fd = open_for_removal(parent_fd, name)
            if fd is None:
                return
            try:
                TreeRemover(fd).empty(fd)
            finally:
                os.close(fd)
    except OSError as error:
        raise _named(name, error) from error
    raise RemovalError(os.fsdecode(name), "something keeps writing into it")


class TreeRemover:
    """Removes folders of one tree.

    Args:
        top_fd: descriptor of the tree's top; what lies too deep is moved there under a random name first.
    """

    def __init__(self, top_fd: int) -> None:
        self._top_fd = top_fd
        self._moved: list[bytes] = []

    def empty(self, folder_fd: int) -> None:
        """Remove everything inside an open folder of this tree.

        Raises:
            OSError: something resisted.
            RemovalError: the same, where the name of what resisted is known.
        """
        for _ in range(_PASSES):
            folders = unlink_all(folder_fd)
            for name in folders:
                self.remove_folder(folder_fd, name)
            with os.scandir(folder_fd) as rest:
                if next(rest, None) is None:
                    return
        raise OSError(errno.ENOTEMPTY, "something keeps writing into it")

    def remove_folder(self, parent_fd: int, name: bytes) -> None:
        """Remove one folder with all that it holds; if it is no folder any more, remove what stands there.

        Raises:
            RemovalError: something resisted.
        """
        self._descend(parent_fd, name)
        while self._moved:
            self._descend(self._top_fd, self._moved.pop())

    def _descend(self, parent_fd: int, name: bytes) -> None:
        """Depth first with an explicit stack: hostile depth must not decide our stack's."""
        # Each level: its descriptor, its name in the level above, the folders still in it, passes made.
        stack: list[tuple[int, bytes, list[bytes], int]] = []
        here = name
        try:
            self._enter(stack, parent_fd, name, 0)
            while stack:
                fd, here, folders, passes = stack[-1]
                if folders:
                    below = folders.pop()
                    if len(stack) >= DEEPEST_OPEN:
                        self._move_up(fd, below)
                    else:
                        self._enter(stack, fd, below, 0)
                    continue
                stack.pop()
                os.close(fd)
                above_fd = stack[-1][0] if stack else parent_fd
                if not _remove_empty(above_fd, here):
                    if passes >= _PASSES:
                        raise RemovalError(os.fsdecode(here), "something keeps writing into it")
                    self._enter(stack, above_fd, here, passes + 1)
        except OSError as error:
            raise _named(here, error) from error
        finally:
            for fd, *_ in stack:
                os.close(fd)

    def _enter(
        self, stack: list[tuple[int, bytes, list[bytes], int]], parent_fd: int, name: bytes, passes: int
    ) -> None:
        # Removing it as it is comes first: an empty folder is done with, and a mount point says that it is one,
        # before anything in it is touched. The device would not tell: a bind mount can have the tree's own.
        fd = None if _remove_empty(parent_fd, name) else open_for_removal(parent_fd, name)
        if fd is None:
            return
        stack.append((fd, name, [], passes))
        stack[-1][2].extend(unlink_all(fd))

    def _move_up(self, parent_fd: int, name: bytes) -> None:
        """Move a folder to the top of the tree. Its own mode is opened first: moving rewrites its `..`."""
        fd = None if _remove_empty(parent_fd, name) else open_for_removal(parent_fd, name)
        if fd is None:
            return
        os.close(fd)
        fresh = b".removed-" + secrets.token_hex(16).encode()
        try:
            os.rename(name, fresh, src_dir_fd=parent_fd, dst_dir_fd=self._top_fd)
        except FileNotFoundError:
            return
        self._moved.append(fresh)


def unlink_all(folder_fd: int) -> list[bytes]:
    """Unlink everything in an open folder that is no folder; gives the names of the folders."""
    folders: list[bytes] = []
    with os.scandir(folder_fd) as entries:
        for entry in entries:
            name = os.fsencode(entry.name)
            if entry.is_dir(follow_symlinks=False) or not unlink(folder_fd, name):
                folders.append(name)
    return folders


def unlink(folder_fd: int, name: bytes) -> bool:
    """Unlink one entry that is no folder; False when it is one. Absent is fine."""
    try:
        os.unlink(name, dir_fd=folder_fd)
    except FileNotFoundError:
        return True
    except (IsADirectoryError, PermissionError):
        # Linux says EISDIR for a folder, macOS EPERM, which is also what an immutable file gives.
        try:
            found = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
        except FileNotFoundError:
            return True
        if stat.S_ISDIR(found.st_mode):
            return False
        raise
    return True


def open_for_removal(parent_fd: int, name: bytes) -> int | None:
    """Open a folder such that its entries can be listed and removed; what is no folder is unlinked instead (None).

    Args:
        parent_fd: the folder that holds it.
        name: its name there.

    Raises:
        OSError: it can't be opened.
    """
    for attempt in range(3):
        try:
            fd = os.open(name, LIST_FOLDER, dir_fd=parent_fd)
        except FileNotFoundError:
            return None
        except PermissionError:
            if attempt == 2:
                raise
            # Swapped for a link or gone meanwhile: the next attempt sees it.
            with contextlib.suppress(NotADirectoryError, FileNotFoundError):
                grant_owner(parent_fd, name)
            continue
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            unlink(parent_fd, name)
            return None
        try:
            if os.fstat(fd).st_mode & 0o700 != 0o700:
                os.fchmod(fd, 0o700)
        except BaseException:
            os.close(fd)
            raise
        return fd
    raise AssertionError("unreachable")


def grant_owner(parent_fd: int, name: bytes) -> None:
    """Give the owner all rights on a folder that can't even be opened, and never on what a link leads to.

    Raises:
        OSError: it is not ours, it is no folder, or the platform has no way to do it safely.
    """
    if sys.platform == "linux":
        # chmod has no way not to follow a link on Linux. An O_PATH descriptor needs no right on the folder itself, is
        # proved to be a folder, and its entry in /proc leads to exactly that inode.
        fd = os.open(name, FOLDER_ONLY | os.O_PATH, dir_fd=parent_fd)
        try:
            os.chmod(f"/proc/self/fd/{fd}", 0o700)
        finally:
            os.close(fd)
    else:
        if not stat.S_ISDIR(os.stat(name, dir_fd=parent_fd, follow_symlinks=False).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        os.chmod(name, 0o700, dir_fd=parent_fd, follow_symlinks=False)


def _remove_empty(parent_fd: int, name: bytes) -> bool:
    """Remove a folder if it is empty; False when something stands in it."""
    try:
        os.rmdir(name, dir_fd=parent_fd)
    except FileNotFoundError:
        return True
    except NotADirectoryError:
        return unlink(parent_fd, name)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        if error.errno == errno.EBUSY:
            raise RemovalError(os.fsdecode(name), _MOUNTED) from error
        raise
    return True


def _named(name: bytes, error: OSError) -> RemovalError:
    return RemovalError(os.fsdecode(name), error.strerror or str(error))
