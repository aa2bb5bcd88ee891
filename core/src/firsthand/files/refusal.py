"""Why a file is not read, written or removed: one machine-readable reason each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from firsthand.errors import FirsthandError, StateError

FileReason: TypeAlias = Literal[
    "symlink",
    "dangling-link",
    "link-loop",
    "not-a-directory",
    "permission",
    "directory",
    "fifo",
    "socket",
    "device",
    "set-id",
    "too-large",
    "changed-during-read",
    "name-too-long",
    "unreadable",
    "unsupported-platform",
]
"""Why a registered path was refused. True absence (ENOENT) is no refusal and has no reason here."""

FILE_REASONS: Final[Mapping[FileReason, tuple[str, str]]] = MappingProxyType(
    {
        "symlink": (
            "the path, or a folder on the way to it, is a symbolic link",
            "register the file that the link leads to, or replace the link by the file",
        ),
        "dangling-link": (
            "the path, or a folder on the way to it, is a symbolic link that leads nowhere",
            "remove the link; a file that is yet to be made is registered as a path where nothing stands",
        ),
        "link-loop": (
            "the path, or a folder on the way to it, is a symbolic link that leads back to itself",
            "remove the link",
        ),
        "not-a-directory": (
            "a folder on the way to the file is not a folder",
            "correct the path, or remove what stands in the folder's place",
        ),
        "permission": (
            "the file or a folder on the way to it may not be read",
            "give this user the right to read it",
        ),
        "directory": ("the path is a folder", "register the files inside it one by one"),
        "fifo": ("the path is a named pipe", "register regular files only"),
        "socket": ("the path is a socket", "register regular files only"),
        "device": ("the path is a device", "register regular files only"),
        "set-id": (
            "the file has a set-user-id or set-group-id bit",
            "remove the bit (chmod u-s,g-s)",
        ),
        "too-large": ("the file is larger than its limit", "make the file smaller or leave it out"),
        "changed-during-read": (
            "the file was changed while it was read",
            "stop what writes to it, and start again",
        ),
        "name-too-long": (
            "the operating system takes no name this long",
            "shorten the path",
        ),
        "unreadable": ("the operating system could not read the file", "repair what its message names"),
        "unsupported-platform": (
            "this platform has no reading relative to a folder's descriptor",
            "use Linux or macOS",
        ),
    }
)
"""Each reason's meaning and what to do about it."""


class FileRefusedError(FirsthandError):
    """A path was not read. `path` is as the caller gave it, `reason` is stable, `detail` is for people."""

    default_code = "usage"

    def __init__(self, path: str, reason: FileReason, detail: str = "") -> None:
        self.path = path
        self.reason = reason
        self.detail = detail
        meaning, next_step = FILE_REASONS[reason]
        message = f"{reason}: {meaning}" + (f" ({detail})" if detail else "")
        super().__init__(message, where=path, next_step=next_step)


class FileWriteError(StateError):
    """A file or folder of our own could not be made: what stands there, or the operating system, forbids it."""


class RemovalError(StateError):
    """A leftover could not be removed. `path` names it as far as it is known."""

    def __init__(self, path: str, detail: str) -> None:
        self.path = path
        super().__init__(
            f"a leftover could not be removed: {detail}",
            where=path,
            next_step="find what holds it (a mount, an immutable flag, a process that still writes), then remove it",
        )
