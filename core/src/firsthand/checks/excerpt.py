r"""A bounded, readable piece of what a command printed.

Text is UTF-8 where it can be; every other byte stands as a backslash escape (`\xff`), so that it differs from a real
U+FFFD. What is cut away in the middle is never half a character.
"""

from __future__ import annotations

from typing import Final

from firsthand.isolation.interface import Captured
from firsthand.records import Excerpt

EXCERPT_BYTES: Final = 8192
"""Limit of an excerpt, as UTF-8, head and tail together. Source: the contract, Reviewer tools."""

_LONGEST_CHARACTER: Final = 4


def excerpt(captured: Captured, limit_bytes: int = EXCERPT_BYTES) -> Excerpt:
    """Cut what was read from one stream down to its beginning and its end.

    Args:
        captured: the bytes that were kept, with count and digest of all that was read.
        limit_bytes: most that head and tail take together when encoded as UTF-8, escapes included.

    Returns:
        The whole text as `head` when it fits; otherwise about half of the limit from each end, `truncated`. A
        character that a cut goes through is dropped.
    """
    data = captured.data
    lost = captured.total_bytes > len(data)
    if len(data) <= limit_bytes:
        text = data.decode("utf-8", "backslashreplace")
        if len(text.encode()) <= limit_bytes:
            return _excerpt(captured, text, "", truncated=lost)
    half = limit_bytes // 2
    return _excerpt(captured, _head(data, half), _tail(data, half), truncated=True)


def _excerpt(captured: Captured, head: str, tail: str, *, truncated: bool) -> Excerpt:
    return Excerpt(head=head, tail=tail, total_bytes=captured.total_bytes, sha256=captured.sha256, truncated=truncated)


def _head(data: bytes, limit_bytes: int) -> str:
    units: list[str] = []
    used = position = 0
    while position < len(data):
        unit, length = _unit(data, position)
        size = len(unit.encode())
        if used + size > limit_bytes:
            break
        units.append(unit)
        used += size
        position += length
    return "".join(units)


def _tail(data: bytes, limit_bytes: int) -> str:
    units: list[str] = []
    position = _boundary(data, max(0, len(data) - limit_bytes))
    while position < len(data):
        unit, length = _unit(data, position)
        units.append(unit)
        position += length
    # Escapes are longer than the bytes that they stand for: what does not fit goes from the front.
    kept: list[str] = []
    used = 0
    for unit in reversed(units):
        used += len(unit.encode())
        if used > limit_bytes:
            break
        kept.append(unit)
    return "".join(reversed(kept))


def _boundary(data: bytes, position: int) -> int:
    """The first place at or after `position` that is not inside a valid character."""
    for start in range(max(0, position - _LONGEST_CHARACTER + 1), position):
        unit, length = _unit(data, start)
        if length > 1 and start + length > position and not unit.startswith("\\x"):
            return start + length
    return position


def _unit(data: bytes, position: int) -> tuple[str, int]:
    """One character, or one escaped byte, and how many bytes it takes."""
    first = data[position]
    length = 1 if first < 0xC0 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    try:
        return data[position : position + length].decode("utf-8"), length
    except UnicodeDecodeError:
        return f"\\x{first:02x}", 1
