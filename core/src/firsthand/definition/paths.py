"""The rules for a registered path that its text alone decides."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

from firsthand.definition.credentials import credential_file, credential_folder
from firsthand.definition.reasons import DefinitionError
from firsthand.files import Folding

LONGEST_NAME_BYTES: Final = 255
LONGEST_PATH_BYTES: Final = 4095

HISTORY_FOLDERS: Final = frozenset({".git", ".hg", ".svn", ".jj", ".bzr", "_darcs"})

PATH_PATTERN: Final = (
    r"^(?!\.{1,2}(?:/|$))[^/\\\u0000-\u001f\u007f-\u009f]+(?:/(?!\.{1,2}(?:/|$))[^/\\\u0000-\u001f\u007f-\u009f]+)*$"
)
"""The plain part of these rules for editors (ECMA 262): relative, no empty, `.` or `..` segment, no control."""


def refuse_path(path: str, field: str) -> None:
    """Refuse a path that may not be registered, whatever stands there.

    Raises:
        DefinitionError: with the first rule that it breaks.
    """
    fault = _form_fault(path) or _name_fault(path.split("/"))
    if fault:
        raise DefinitionError(field, fault[0], fault[1])


def refuse_collisions(paths: Sequence[str], fields: Sequence[str], folding: Folding) -> None:
    """Refuse paths that stand twice, that are a folder on the way to another, or that become one name when folded.

    Args:
        paths: registered paths that passed `refuse_path`.
        fields: the field of each.
        folding: how the file system compares names on which the copies will lie.

    Raises:
        DefinitionError: naming the later of the two.
    """
    taken: dict[str, str] = {}
    files: set[str] = set()
    folders: set[str] = set()
    for path, field in zip(paths, fields, strict=True):
        if path in files:
            raise DefinitionError(field, "duplicate", path)
        names = path.split("/")
        above = ["/".join(names[:depth]) for depth in range(1, len(names))]
        clash = path if path in folders else next((folder for folder in above if folder in files), None)
        if clash is not None:
            raise DefinitionError(field, "file-and-folder", clash)
        for spelled in (*above, path):
            other = taken.setdefault(folding.fold(spelled), spelled)
            if other != spelled:
                raise DefinitionError(field, "name-collision", f"{spelled} and {other}")
        files.add(path)
        folders.update(above)


def _form_fault(path: str) -> tuple[str, str] | None:
    if not path:
        return "empty", ""
    if "\0" in path:
        return "nul", ""
    control = next((char for char in path if unicodedata.category(char) == "Cc"), None)
    if control is not None:
        return "control-character", f"U+{ord(control):04X}"
    if "\\" in path:
        return "backslash", ""
    if path.startswith("/"):
        return "absolute-path", ""
    return _segment_fault(path.split("/"))


def _segment_fault(names: Sequence[str]) -> tuple[str, str] | None:
    for reason, segment in (("parent-segment", ".."), ("dot-segment", "."), ("empty-segment", "")):
        if segment in names:
            return reason, ""
    lengths = [len(name.encode("utf-8", "surrogatepass")) for name in names]
    if max(lengths) > LONGEST_NAME_BYTES or sum(lengths) + len(lengths) - 1 > LONGEST_PATH_BYTES:
        return "name-too-long", f"at most {LONGEST_NAME_BYTES} bytes a name, {LONGEST_PATH_BYTES} in all"
    return None


def _name_fault(names: Sequence[str]) -> tuple[str, str] | None:
    plain = [_look_alike(name) for name in names]
    if "node_modules" in plain:
        return "dependency-folder", ""
    for name in plain:
        if name in HISTORY_FOLDERS:
            return "history", name
    if "__pycache__" in plain or plain[-1].endswith((".pyc", ".pyo")):
        return "bytecode", ""
    # A credential folder named as if it were a file is refused as well: a link or a later folder may stand there.
    listed = credential_folder(plain) or credential_file(plain[-1])
    return ("credential-path", listed) if listed else None


def _look_alike(name: str) -> str:
    """What some file system may take this name for: case, compatibility forms and ignored characters folded away."""
    if name.isascii():
        return name.casefold().rstrip(" .") or name
    visible = "".join(char for char in unicodedata.normalize("NFKC", name) if unicodedata.category(char) != "Cf")
    return visible.casefold().rstrip(" .") or name
