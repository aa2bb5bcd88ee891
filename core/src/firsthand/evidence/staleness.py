"""Whether the files below a root are still those that the evidence is about, and what they add to its recount.

Only bytes, permission bits and presence are compared. Link counts are not: they belong to the place where the files
were frozen, and a clone elsewhere has its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from firsthand.canonical import sha256_hex
from firsthand.evidence.problems import invalid, stale
from firsthand.files import Cursor, FileRefusedError, open_folder
from firsthand.records import Evidence, ManifestEntry, MutationRun
from firsthand.rules import Problem

LIMIT_FILE_BYTES: Final = 2 * 1024 * 1024
"""Longest file that can be registered; more is never read."""


def staleness_problems(evidence: Evidence, root: Path) -> tuple[list[Problem], dict[str, bytes]]:
    """Read every registered file below `root`, without following links.

    Returns:
        What differs from the manifest, each with the code evidence_stale, and the bytes of the files that do not
        differ, by path. A root or file that can't be read differs: freshness is shown or it is not.
    """
    problems: list[Problem] = []
    contents: dict[str, bytes] = {}
    try:
        root_fd = open_folder(root)
    except FileRefusedError as error:
        return [stale(str(root), f"the root can't be read: {error.message}")], contents
    try:
        with Cursor(root_fd) as cursor:
            for entry in evidence.manifest.entries:
                found = _compare(cursor, entry)
                if isinstance(found, bytes):
                    contents[entry.path] = found
                elif found is not None:
                    problems.append(found)
    finally:
        os.close(root_fd)
    return problems, contents


def _compare(cursor: Cursor, entry: ManifestEntry) -> Problem | bytes | None:
    """What is wrong with one file, or its bytes, or None for one that is missing as it should be."""
    try:
        found = cursor.read(entry.path, LIMIT_FILE_BYTES)
    except FileRefusedError as error:
        return stale(entry.path, f"it can't be read as it was: {error.message}")
    if found is None:
        return None if entry.state == "missing" else stale(entry.path, "it is missing now")
    if entry.state == "missing":
        return stale(entry.path, "it was missing and is there now")
    if sha256_hex(found.data) != entry.sha256:
        return stale(entry.path, "its bytes have changed")
    if found.mode != entry.mode:
        return stale(entry.path, f"its mode was {entry.mode:04o} and is {found.mode:04o} now")
    return found.data


def replay_problems(evidence: Evidence, contents: Mapping[str, bytes]) -> Iterator[Problem]:
    """Apply each mutation again, in memory, to the frozen bytes: what the records alone can't show.

    Args:
        evidence: the records.
        contents: bytes that have the manifest's digest, by path; a mutation of another file is not looked at.
    """
    for index, mutation in enumerate(evidence.mutations):
        content = contents.get(mutation.mutation.path)
        if content is not None:
            yield from _replay(f"mutations[{index}]", mutation, content)


def _replay(where: str, run: MutationRun, content: bytes) -> Iterator[Problem]:
    old, new = run.mutation.old.encode(), run.mutation.new.encode()
    first = content.find(old) if old else -1
    # The search goes on one byte later, so that overlapping places count as two.
    unique = first >= 0 and content.find(old, first + 1) < 0
    if run.verdict == "not-applied":
        holds = {
            "old-absent": first < 0,
            "old-not-unique": first >= 0 and not unique,
            "not-utf-8": not _is_utf8(content),
        }
        if not holds.get(run.cause, True):
            yield invalid(f"{where}.cause", f"the frozen file shows that {run.cause} does not hold")
        return
    if run.mutated is None:
        return
    if not unique or run.offset_bytes != first or not _is_utf8(content):
        yield invalid(f"{where}.offsetBytes", "old does not stand exactly once, here, in the frozen file")
    elif sha256_hex(content[:first] + new + content[first + len(old) :]) != run.mutated_sha256:
        yield invalid(f"{where}.mutatedSha256", "not the digest of the frozen file with this replacement")


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
