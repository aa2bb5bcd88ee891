"""The reviewer's transcript under guard: bounded while it is written, read without trust, split at LF bytes only.

Source: the contract, Reviewer isolation and auth ("always"). The program that writes it is not trusted: the guard
looks at names and sizes only, follows no link, and reads a file only when it is regular, inside the run's own folder
and the same before and after.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from firsthand.canonical import sha256_hex
from firsthand.files import FileRefusedError, open_folder, read_registered
from firsthand.records import Transcript

LIMIT_TRANSCRIPT_BYTES: Final = 64 * 1024 * 1024
"""All files that a run's program writes, together."""
LIMIT_ENTRIES: Final = 10_000
"""Files and folders that a run's program may make."""


class TranscriptError(Exception):
    """A guard of the transcript failed; the message is the cause."""


def overrun(folder: Path, limit_bytes: int = LIMIT_TRANSCRIPT_BYTES, limit_entries: int = LIMIT_ENTRIES) -> str:
    """Why what a run has written is too much, or an empty text; exactly the limit is not too much.

    Counts every file's size, sparse or not, since that is what a reader would have to read. Follows no link. Costs a
    look at each entry; what vanishes meanwhile is not counted.
    """
    total = entries = 0
    waiting = [os.fspath(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as listed:
                for entry in listed:
                    entries += 1
                    if entries > limit_entries:
                        return f"more than {limit_entries} files and folders"
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                        continue
                    try:
                        total += entry.stat(follow_symlinks=False).st_size
                    except OSError:
                        continue
                    if total > limit_bytes:
                        return f"more than {limit_bytes} bytes in all its files"
        except OSError:
            continue
    return ""


class ReadTranscript:
    """A transcript that was read whole under all guards.

    Attributes:
        record: size and digest over the files' bytes, one after the other in the order given.
    """

    def __init__(self, contents: Sequence[bytes]) -> None:
        self._contents = contents
        joined = contents[0] if len(contents) == 1 else b"".join(contents)
        self.record = Transcript(bytes=len(joined), sha256=sha256_hex(joined))

    def records(self) -> Iterator[bytes]:
        """Each record without its line end. A record ends at an LF byte, and at nothing else that looks like one."""
        for content in self._contents:
            start = 0
            while start < len(content):
                end = content.find(b"\n", start)
                end = len(content) if end < 0 else end
                yield content[start:end]
                start = end + 1


def read_transcript(
    folder: Path, files: Sequence[Path], limit_bytes: int = LIMIT_TRANSCRIPT_BYTES
) -> ReadTranscript | None:
    """Read what a provider named as its program's transcript, after the program's end.

    1. Everything in the run's folder together is within the limit.
    2. Each file lies inside that folder; no component of its path is a link.
    3. Each is a regular file, and did not change while it was read.

    Args:
        folder: the run's private folder.
        files: absolute paths, each once.
        limit_bytes: of all together.

    Returns:
        None when no file is named.

    Raises:
        TranscriptError: a guard failed, with its cause.
    """
    cause = overrun(folder, limit_bytes)
    if cause:
        raise TranscriptError(cause)
    contents: list[bytes] = []
    left = limit_bytes
    for file in files:
        try:
            relative = file.relative_to(folder)
        except ValueError as error:
            raise TranscriptError(f"{file.name} is not inside the run") from error
        if not relative.parts or ".." in relative.parts:
            raise TranscriptError(f"{file.name} is not inside the run")
        contents.append(_read(folder, relative.as_posix(), left))
        left -= len(contents[-1])
    return ReadTranscript(contents) if contents else None


def _read(folder: Path, path: str, limit_bytes: int) -> bytes:
    try:
        root_fd = open_folder(folder)
        try:
            content = read_registered(root_fd, path, limit_bytes)
        finally:
            os.close(root_fd)
    except FileRefusedError as error:
        raise TranscriptError(f"{path}: {error.reason}") from error
    if content is None:
        raise TranscriptError(f"{path}: it is not there")
    return content.data
