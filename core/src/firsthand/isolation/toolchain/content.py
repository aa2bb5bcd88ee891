"""A digest of a toolchain root's content, cached by stat so that only what changed is read again.

The cache is a private file per root. It is trusted as the rest of the state directory is: someone with the user's own
rights could edit it, and could as well edit the toolchain.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Final, TypeAlias

from firsthand.canonical import sha256_hex

_VERSION: Final = 1
_Known: TypeAlias = dict[str, tuple[str, str]]


class RootDigests:
    """Digests roots, remembering files by size, times, inode and mode.

    Args:
        cache: an existing private folder for the remembered digests; None remembers nothing.
    """

    def __init__(self, cache: Path | None) -> None:
        self._cache = cache

    def digest(self, root: Path) -> str:
        """SHA-256 over type, mode, path and content (or link target) of everything below `root`, sorted by path.

        Links are not followed. Sockets, FIFOs and devices count with their type. What can't be read counts as
        unreadable, so that a change of that shows as well.
        """
        known = self._load(root)
        seen: _Known = {}
        pending = [os.fspath(root)]
        prefix_length = len(os.fspath(root)) + 1
        lines: list[str] = []
        while pending:
            folder = pending.pop()
            try:
                entries = list(os.scandir(folder))
            except OSError as error:
                lines.append(f"{folder[prefix_length:]!r} unreadable {error.errno}")
                continue
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    pending.append(entry.path)
                relative = entry.path[prefix_length:]
                lines.append(f"{relative!r} {status.st_mode:o} {_content(entry, status, relative, known, seen)}")
        if seen != known:
            self._store(root, seen)
        return sha256_hex("\n".join(sorted(lines)).encode("utf-8", "surrogateescape"))

    def _file(self, root: Path) -> Path | None:
        return None if self._cache is None else self._cache / f"root-{sha256_hex(os.fsencode(root))}.json"

    def _load(self, root: Path) -> _Known:
        file = self._file(root)
        if file is None:
            return {}
        try:
            stored = json.loads(file.read_bytes())
            if stored["version"] != _VERSION:
                return {}
            return {str(path): (str(mark), str(digest)) for path, (mark, digest) in stored["files"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            # Absent or unreadable: everything is read again.
            return {}

    def _store(self, root: Path, seen: _Known) -> None:
        file = self._file(root)
        if file is None:
            return
        new = file.with_suffix(f".{os.getpid()}")
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w") as stream:
                json.dump({"version": _VERSION, "files": seen}, stream)
            new.replace(file)
        except OSError:
            # Nothing is remembered, so everything is read again next time.
            with contextlib.suppress(OSError):
                new.unlink()


def _content(entry: os.DirEntry[str], status: os.stat_result, relative: str, known: _Known, seen: _Known) -> str:
    if stat.S_ISLNK(status.st_mode):
        return repr(os.readlink(entry.path))
    if not stat.S_ISREG(status.st_mode):
        return "-"
    mark = f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino} {status.st_mode:o}"
    remembered = known.get(relative)
    if remembered is not None and remembered[0] == mark:
        digest = remembered[1]
    else:
        try:
            with open(entry.path, "rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            digest = f"unreadable {error.errno}"
    seen[relative] = (mark, digest)
    return digest
