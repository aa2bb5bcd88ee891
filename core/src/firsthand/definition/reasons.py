"""Every reason for which a definition is refused, with its meaning and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from firsthand.errors import FirsthandError
from firsthand.files import FILE_REASONS

_DOCUMENT: Final = {
    "no-definition": ("there is no such file", "name the file with --config, or make one with `firsthand init`"),
    "document-too-large": ("the document is larger than 2 MiB", "make the document smaller"),
    "byte-order-mark": ("the document starts with a byte order mark", "save it as UTF-8 without one"),
    "not-utf8": ("the document is not UTF-8", "save it as UTF-8"),
    "not-json": ("the document is not JSON", "correct it where the message points"),
    "too-deep": ("the document is nested deeper than 16 levels", "remove the surplus nesting"),
    "duplicate-key": ("a key stands twice in one object", "keep one of them"),
    "float": ("a number has a fraction or an exponent", "write a whole number"),
    "unsafe-integer": ("a whole number lies beyond ±(2^53 - 1), or is -0", "write a smaller number"),
    "not-a-number": ("NaN or Infinity stands in place of a number", "write a whole number"),
    "lone-surrogate": ("a string holds half of a surrogate pair", "write the whole character"),
    "not-canonical": (
        "a recorded definition is not in canonical form",
        "use evidence as Firsthand wrote it; a changed copy can't be repaired",
    ),
}

_SHAPE: Final = {
    "unknown-field": ("there is no such field", "remove it or correct its spelling; `firsthand schema` lists all"),
    "missing-field": ("a field that must be there is missing", "add it; `firsthand schema` describes it"),
    "wrong-type": ("the value is of the wrong type", "write what `firsthand schema` describes"),
    "empty": ("the value is empty", "fill it in"),
    "too-many": ("the list is too long", "shorten it to the limit that `firsthand schema` gives"),
    "too-long": ("the text is too long", "shorten it to the limit that `firsthand schema` gives"),
    "out-of-range": ("the number lies outside its range", "write a number in the range that `firsthand schema` gives"),
    "bad-name": (
        "the name has a character or a length that is not allowed",
        "follow the pattern in `firsthand schema`",
    ),
    "unknown-value": ("the value is not one of the known ones", "choose one that `firsthand schema` lists"),
    "duplicate": ("the same value stands twice", "keep one of them"),
    "nothing-registered": (
        "there is neither a registered file nor a package document",
        "add reviewVerification, or at least one document to package",
    ),
    "in-review-json": (
        "review.json holds a reviewVerification",
        "move it to the run definition; review.json holds only what `firsthand preflight` wrote",
    ),
}

_PATH: Final = {
    "nul": ("the text holds a NUL character", "remove it"),
    "control-character": ("the path holds a control character", "rename the file"),
    "absolute-path": ("the path is absolute", "write it relative to the root"),
    "backslash": ("the path holds a backslash", "separate folders with /"),
    "parent-segment": ("the path holds a .. segment", "write it without; it may not leave the root"),
    "dot-segment": ("the path holds a . segment", "write it without"),
    "empty-segment": ("the path holds an empty segment", "write single slashes, none at the end"),
    "dependency-folder": (
        "the path lies in node_modules",
        "leave it out; a dependency folder can be named in reviewVerification.toolchains",
    ),
    "history": ("the path lies in a version control folder", "leave it out; copies hold no history"),
    "bytecode": ("the path is compiled bytecode", "leave it out and register the source file"),
    "credential-path": (
        "the path is a credential by the published list",
        "leave it out; what is registered goes to the reviewer",
    ),
    "name-collision": (
        "two paths are one name where the copies will lie, since that file system folds case or Unicode",
        "rename one of them, or keep the state directory on a file system that tells them apart",
    ),
    "file-and-folder": ("one registered path is a folder on the way to another", "leave one of them out"),
    "inside-toolchain": (
        "the path lies in a dependency folder that toolchains names",
        "leave it out; that folder is shown read-only and never copied",
    ),
    "not-in-files": ("the path is not in reviewVerification.files", "add it there"),
    "total-too-large": ("the registered files are larger than 16 MiB in all", "register less"),
}

_MUTATION: Final = {
    "package-document": ("the path is a document of the package", "leave it out; only implementation is mutated"),
    "test-file": ("the path is a test by its name or folder", "leave it out; only implementation is mutated"),
    "configuration-file": (
        "the path is configuration by its name or folder",
        "leave it out; only implementation is mutated",
    ),
}

_ROOT: Final = {
    "root-missing": ("the root is not there", "correct it; it is taken from the definition's folder"),
    "root-not-a-folder": ("the root is no folder", "name the project's folder"),
    "root-too-wide": ("the root is /", "name the project's own folder"),
    "root-is-home": ("the root is a home directory or holds one", "name the project's own folder"),
}

_TOOLCHAIN: Final = {
    "toolchain-not-absolute": ("the toolchain root is not an absolute path", "write the whole path"),
    "toolchain-missing": ("the toolchain root is not there", "correct or remove it"),
    "toolchain-not-a-folder": ("the toolchain root is no folder", "name the folder above the program's bin"),
    "toolchain-too-wide": (
        "the toolchain root is a folder that holds far more than one toolchain",
        "name the toolchain's own folder inside it",
    ),
    "toolchain-system": (
        "the toolchain root lies where the system keeps configuration, devices or running state",
        "install the toolchain elsewhere",
    ),
    "toolchain-contains-source": ("the toolchain root holds the source", "name a folder that does not"),
    "toolchain-contains-state": (
        "the toolchain root holds the state directory or lies in it",
        "name a folder that does not, or move the state directory with --state",
    ),
    "toolchain-contains-home": (
        "the toolchain root is a home or holds one",
        "name the toolchain's own folder inside it",
    ),
    "toolchain-inside-source": (
        "the toolchain root lies in the source and is no dependency folder",
        "name a dependency folder such as .venv, node_modules or vendor, or a folder outside",
    ),
    "toolchain-link": (
        "the toolchain root is reached through a link that the project controls",
        "name the folder that the link leads to",
    ),
    "toolchain-holds-socket": (
        "the toolchain root holds a socket, which commands could reach through it",
        "remove the socket or name a folder without one",
    ),
    "toolchain-holds-special-file": (
        "the toolchain root holds a named pipe or a device",
        "remove it or name a folder without one",
    ),
    "toolchain-holds-credentials": (
        "the toolchain root holds a credential by the published list",
        "remove it or name a folder without one",
    ),
    "toolchain-unreadable": (
        "a folder in the toolchain root could not be looked through",
        "give this user the right to read it",
    ),
    "toolchain-too-large": (
        "the toolchain root holds more than 500000 entries",
        "name the toolchain's own folder inside it",
    ),
}

REASONS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        **_DOCUMENT,
        **_SHAPE,
        **_PATH,
        **{str(key): text for key, text in FILE_REASONS.items()},
        **_MUTATION,
        **_ROOT,
        **_TOOLCHAIN,
    }
)
"""Reason, its meaning, and what to do next. Stable: a reason is added or retired, never given another meaning."""


class DefinitionError(FirsthandError):
    """The definition is refused; nothing was executed.

    Attributes:
        field: where in the document, like `reviewVerification.files[3]`; empty for the document as a whole.
        reason: a key of `REASONS`.
        detail: what exactly was found, for people; may be empty.
    """

    default_code = "review_verification_definition"

    def __init__(self, field: str, reason: str, detail: str = "") -> None:
        meaning, next_step = REASONS[reason]
        self.field = field
        self.reason = reason
        self.detail = detail
        super().__init__(f"{reason}: {meaning}" + (f" ({detail})" if detail else ""), where=field, next_step=next_step)
