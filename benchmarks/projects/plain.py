"""Folders of plain files, for what only depends on their number and size."""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.projects.definition import write_definition

_FOLDER_FILES = 16


def plain_project(root: Path, *, files: int, total_bytes: int) -> Path:
    """Make `files` files of `total_bytes` together, 16 in a folder, and a definition that registers all of them.

    Its one check is `true`. The content does not compress and is the same each time.

    Returns:
        The definition's path.
    """
    source = random.Random(2026)  # noqa: S311 # content, no secret
    names = []
    for number in range(files):
        size = total_bytes * (number + 1) // files - total_bytes * number // files
        path = root / "src" / f"part{number // _FOLDER_FILES:02}" / f"file{number:03}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source.randbytes(size))
        names.append(path.relative_to(root).as_posix())
    return write_definition(root, files=names, checks=[{"id": "true", "command": ["true"], "runner": "exit"}])
