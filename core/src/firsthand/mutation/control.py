"""The control mutation: a file made unloadable, to see whether the check loads it at all.

A check that stays green with it does not run this file (an editable install elsewhere, another copy on the path, code
that nothing reaches), and nothing on the file may be called survived or detected. What the check says when it fails
shows what "does not load" looks like there.
"""

from __future__ import annotations

import re
from typing import Final

_BREAK: Final = b")firsthand control(\n"
_BOM: Final = b"\xef\xbb\xbf"

# A file that begins with the line is past saving in these languages: it stands outside any text or comment, and before
# any directive that could end the parsing early.
_AT_THE_START: Final = re.compile(
    r"\.(?:pyi?|pyw|[cm]?[jt]sx?|rs|c|cc|cpp|h|hpp|java|kts?|scala|cs|swift|rb|p[lm]|php|sh|bash|lua|exs?|erl|hs|ml|dart"
    r"|zig|nim|r|jl)\Z"
)
# A build constraint decides before the package clause whether a Go file belongs to the build; a line before it would
# switch the constraint off and make an unused file look used. A Go file's end is never inside a text or comment.
_AT_THE_END: Final = ".go"
_PHP: Final = b"<?php )firsthand control( ?>\n"
"""Outside its tags PHP takes any text."""


def control_of(path: str, original: bytes) -> bytes:
    """The bytes of a file that can't be loaded any more.

    Args:
        path: the file's registered path; its suffix tells the language.
        original: the exact bytes.

    Returns:
        The file with a line that no parser accepts. A byte order mark and a `#!` line stay in front, since the
        operating system or the interpreter looks for them there. Where the language is not known the whole content
        gives way to the line.
    """
    name = path.rpartition("/")[2].lower()
    if name.endswith(_AT_THE_END):
        return original + b"\n" + _BREAK
    mark = _BOM if original.startswith(_BOM) else b""
    rest = original[len(mark) :]
    first = b""
    if rest.startswith(b"#!") and not rest.startswith(b"#!["):
        # Inner attributes of Rust (`#![…]`) are no interpreter line.
        line, newline, _ = rest.partition(b"\n")
        first = line + (newline or b"\n")
    kept = rest[len(first) :] if _AT_THE_START.search(name) else b""
    return mark + first + (_PHP if name.endswith(".php") else _BREAK) + kept
