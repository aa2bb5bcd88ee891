"""Pages of a frozen file: on character boundaries, small enough to be delivered whole, and always getting on.

A reviewer's program may replace a long tool result by a note that the model can't open. So a page is bounded twice: in
bytes of the file, and in characters of the reply after the worst escaping that it meets on its way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from firsthand.review.tools import PAGE_BYTES

REPLY_CHARACTERS: Final = 50_000
"""Longest reply, in UTF-16 code units of its text as a JSON string: below 51,000, where the known program cuts."""

_ENVELOPE_CHARACTERS: Final = 400
"""What stands around the content of a page."""

# Escaped once by us, as part of the reply's JSON, and once more where the program puts the reply into a JSON string.
_QUOTED: Final = re.compile(r'["\\]')
_SHORT: Final = re.compile(r"[\b\t\n\f\r]")
_CONTROL: Final = re.compile(r"[\x00-\x07\x0b\x0e-\x1f]")
_ASTRAL: Final = re.compile(r"[\U00010000-\U0010ffff]")


class PageError(ValueError):
    """There is no such page; the message tells the reader why, and what would be one."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page.

    Attributes:
        content: the text, exactly the file's bytes from the page's offset to `end`.
        end: byte offset behind the page.
        next_offset: where the next page begins; None at the end of the file. Always beyond the page's own offset.
    """

    content: str
    end: int
    next_offset: int | None


def page_of(data: bytes, offset: int) -> Page:
    """The page of a file that begins at a byte offset.

    Args:
        data: the whole file.
        offset: 0, or a place between two characters before the end.

    Raises:
        PageError: the file is not text that can be shown exactly (NUL, not UTF-8), or the offset is not such a place.
    """
    check_text(data)
    if offset < 0 or (offset >= len(data) and offset != 0):
        raise PageError(f"offset {offset} is not in the file, which has {len(data)} bytes; begin at 0")
    if _continues(data, offset):
        raise PageError(f"offset {offset} is inside a character; use 0 or a nextOffset that was answered")
    end = min(len(data), offset + PAGE_BYTES)
    while _continues(data, end):
        end -= 1
    content = _fitting(data[offset:end].decode("utf-8"), REPLY_CHARACTERS - _ENVELOPE_CHARACTERS)
    end = offset + len(content.encode("utf-8"))
    return Page(content=content, end=end, next_offset=end if end < len(data) else None)


def check_text(data: bytes) -> str:
    """A file's bytes as the text that they are, exactly.

    Raises:
        PageError: they hold a NUL byte or are not UTF-8.
    """
    if b"\0" in data:
        raise PageError(f"the file holds a NUL byte at {data.index(0)}, so it is not text and can't be read here")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PageError(f"the file is not UTF-8 at byte {error.start}, so it can't be read here") from error


def escaped_characters(text: str) -> int:
    """Length of a text in UTF-16 code units after it was made part of a JSON text that is itself a JSON string."""
    return (
        len(text)
        + 3 * len(_QUOTED.findall(text))
        + 2 * len(_SHORT.findall(text))
        + 6 * len(_CONTROL.findall(text))
        + len(_ASTRAL.findall(text))
    )


def _continues(data: bytes, position: int) -> bool:
    """Whether a byte of valid UTF-8 is not the first of its character."""
    return position < len(data) and data[position] & 0xC0 == 0x80


def _fitting(text: str, limit: int) -> str:
    """The longest beginning that fits, by halving; one character always fits."""
    if escaped_characters(text) <= limit:
        return text
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if escaped_characters(text[:middle]) <= limit else (low, middle - 1)
    return text[:low]
