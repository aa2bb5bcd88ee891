"""Foreign text made harmless for a terminal and a log.

File names, output of checks and plug-ins' messages may hold anything. Control characters are shown as escapes, so they
can't move the cursor, colour the screen or hide text; directional overrides too. In a continuous-integration log a line
that begins with `::`, or holds `##[`, `##vso[` or the like at any place, would be a command of the runner: the first is
shown with a mark before it, the others with a space inside.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # `--help` speaks no canonical JSON
    from firsthand.canonical import JSONValue

_KEPT: Final = "\n\t"
_LINE_COMMAND: Final = re.compile(r"^(\s*)::", re.MULTILINE)
_COMMAND: Final = re.compile(r"##(?=[A-Za-z]*\[)")
_HIDDEN: Final = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def visible(text: str) -> str:
    """The text with everything that is not plain to see escaped; newlines and tabs stay."""
    if not (text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()):
        text = "".join(character if _plain(character) else _escape(character) for character in text)
    return _COMMAND.sub("## ", _LINE_COMMAND.sub(r"\1| ::", text))


def one_line(text: str, limit: int = 200) -> str:
    """`visible`, on one line of at most `limit` characters."""
    line = visible(text).replace("\n", "\\n").replace("\t", " ")
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def json_line(value: Mapping[str, JSONValue]) -> str:
    """One JSON object on one line, its newline included; ASCII only, and no command of a runner in it."""
    # Within JSON a number sign only stands in strings, so it may be written as an escape.
    return json.dumps(value, ensure_ascii=True).replace("##", "#\\u0023") + "\n"


def _plain(character: str) -> bool:
    return character in _KEPT or unicodedata.category(character) not in _HIDDEN


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
