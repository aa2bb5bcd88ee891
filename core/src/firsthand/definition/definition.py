"""Reading a definition: from exact bytes to a frozen document, its root and its fingerprint."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from firsthand.canonical import JSONValue, StrictJSONError, canonical_bytes, parse_strict, sha256_hex
from firsthand.definition.diagnosis import DOCUMENT_LIMIT_BYTES, DOCUMENT_LIMIT_DEPTH, diagnose, field_below
from firsthand.definition.document import Document
from firsthand.definition.reasons import DefinitionError
from firsthand.definition.rules import Registered, refuse_document, registered_paths
from firsthand.definition.toolchains import home_folders, refuse_root
from firsthand.files import FileRefusedError, Folding, read_path


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition that passed every rule which needs no registered file to be read.

    Attributes:
        document: the frozen document, defaults filled in.
        root: the project's folder, absolute and resolved.
        canonical: RFC 8785 bytes of the document as written: no defaults, `$schema` left out.
        fingerprint: SHA-256 of `canonical`, lower-case hexadecimal.
    """

    document: Document
    root: Path
    canonical: bytes
    fingerprint: str

    @property
    def registered(self) -> tuple[Registered, ...]:
        """What is frozen, in order: `reviewVerification.files`, or without it the package's documents."""
        return registered_paths(self.document)


def load_definition(
    path: Path,
    *,
    state_dir: Path | None = None,
    homes: Sequence[Path] | None = None,
    folding: Folding = Folding(),  # noqa: B008 - frozen
    executes: bool = True,
) -> Definition:
    """Read a definition file (at most 2 MiB, a regular file and no link) and parse it; see `parse_definition`.

    Raises:
        DefinitionError: with field and reason.
    """
    try:
        content = read_path(path, DOCUMENT_LIMIT_BYTES)
    except FileRefusedError as error:
        reason = "document-too-large" if error.reason == "too-large" else error.reason
        raise DefinitionError("", reason, str(path)) from error
    if content is None:
        raise DefinitionError("", "no-definition", str(path))
    return parse_definition(
        content.data, path.absolute().parent, state_dir=state_dir, homes=homes, folding=folding, executes=executes
    )


def parse_definition(
    raw: bytes,
    folder: Path,
    *,
    state_dir: Path | None = None,
    homes: Sequence[Path] | None = None,
    folding: Folding = Folding(),  # noqa: B008 - frozen
    executes: bool = True,
) -> Definition:
    """Parse exact bytes into a definition. Executes nothing, writes nothing, reads no registered file.

    Args:
        raw: the document as it was read.
        folder: where it lies; `root` is taken from here.
        state_dir: the private state directory, which no toolchain root may hold.
        homes: what counts as a home; by default this user's, by HOME and by the user database.
        folding: how the file system compares names on which the copies will lie; see `files.probe_folding`.
        executes: whether commands are to run. If not, toolchain roots are judged by their text alone: a machine that
            only compares and reports need not have them.

    Raises:
        DefinitionError: with field and reason, for the first rule that is broken.
    """
    value, document = _parse(raw, schema_line=True)
    refuse_document(document, folding)
    known_homes = tuple(homes) if homes is not None else home_folders(os.environ)
    root = _resolve_root(folder, document.root, known_homes)
    if document.review_verification is not None:
        for place, toolchain in enumerate(document.review_verification.toolchains if executes else ()):
            refuse_root(
                Path(toolchain),
                source=root,
                state_dir=state_dir,
                homes=known_homes,
                field=f"reviewVerification.toolchains[{place}]",
            )
        _refuse_files_inside_toolchains(document, root)
    canonical = canonical_bytes(value)
    return Definition(document=document, root=root, canonical=canonical, fingerprint=sha256_hex(canonical))


def parse_canonical(text: str) -> Document:
    """Parse a recorded definition, exactly as `Definition.canonical` spells it; the file system is not touched.

    Raises:
        DefinitionError: not canonical, or a rule that the text alone decides is broken.
    """
    try:
        raw = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DefinitionError("", "lone-surrogate") from error
    value, document = _parse(raw, schema_line=False)
    if canonical_bytes(value) != raw:
        raise DefinitionError("", "not-canonical")
    refuse_document(document, Folding())
    return document


def fingerprint(raw: bytes) -> str:
    """The fingerprint of a definition by its bytes alone: the shape is checked, the file system is not touched.

    Raises:
        DefinitionError: with field and reason.
    """
    value, document = _parse(raw, schema_line=True)
    refuse_document(document, Folding())
    return sha256_hex(canonical_bytes(value))


def refuse_in_review(raw: bytes) -> None:
    """Refuse a review.json that holds a `reviewVerification`, at whatever depth: it belongs to the definition.

    Raises:
        DefinitionError: it holds one, or is not strict JSON.
    """
    try:
        value = parse_strict(raw, limit_bytes=DOCUMENT_LIMIT_BYTES, limit_depth=DOCUMENT_LIMIT_DEPTH)
    except StrictJSONError as error:
        raise diagnose(raw, error) from error
    for node, field in _nodes(value):
        if isinstance(node, dict) and "reviewVerification" in node:
            raise DefinitionError(field_below(field, "reviewVerification"), "in-review-json")


def _parse(raw: bytes, *, schema_line: bool) -> tuple[JSONValue, Document]:
    """The value as written, without its `$schema` where one may stand, and its document."""
    try:
        value = parse_strict(raw, limit_bytes=DOCUMENT_LIMIT_BYTES, limit_depth=DOCUMENT_LIMIT_DEPTH)
    except StrictJSONError as error:
        raise diagnose(raw, error) from error
    if not isinstance(value, dict):
        raise DefinitionError("", "wrong-type", "not an object")
    if schema_line and "$schema" in value:
        if not isinstance(value["$schema"], str):
            raise DefinitionError("$schema", "wrong-type", "not a string")
        value = {key: child for key, child in value.items() if key != "$schema"}
    _refuse_nulls(value)
    try:
        # By way of JSON, since strict mode takes a list for a tuple only there.
        return value, Document.model_validate_json(canonical_bytes(value))
    except ValidationError as error:
        raise _shape_error(error) from error


def _refuse_nulls(value: JSONValue) -> None:
    """An absent field and a null would be two spellings of one thing."""
    for node, field in _nodes(value):
        if node is None:
            raise DefinitionError(field, "wrong-type", "null")


def _nodes(value: JSONValue) -> Iterator[tuple[JSONValue, str]]:
    """Every value with its field, in the document's order."""
    pending: list[tuple[JSONValue, str]] = [(value, "")]
    while pending:
        node, field = pending.pop()
        yield node, field
        if isinstance(node, dict):
            pending.extend((child, field_below(field, key)) for key, child in reversed(node.items()))
        elif isinstance(node, list):
            pending.extend((node[place], field_below(field, place)) for place in reversed(range(len(node))))


_REASON_BY_TYPE = {
    "extra_forbidden": "unknown-field",
    "missing": "missing-field",
    "too_short": "empty",
    "string_too_short": "empty",
    "too_long": "too-many",
    "string_too_long": "too-long",
    "string_pattern_mismatch": "bad-name",
    "greater_than_equal": "out-of-range",
    "less_than_equal": "out-of-range",
    "literal_error": "unknown-value",
    "repeated": "duplicate",
}


def _shape_error(error: ValidationError) -> DefinitionError:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    # A misspelled name is both unknown and missing; the unknown one tells more.
    first = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
    field = ""
    for step in first["loc"]:
        field = field_below(field, step)
    return DefinitionError(field, _REASON_BY_TYPE.get(first["type"], "wrong-type"), first["msg"])


def _resolve_root(folder: Path, written: str, homes: Sequence[Path]) -> Path:
    if "\0" in written:
        raise DefinitionError("root", "nul")
    try:
        root = (folder / written).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise DefinitionError("root", "root-missing", str(folder / written)) from error
    if not root.is_dir():
        raise DefinitionError("root", "root-not-a-folder", str(root))
    if root == Path(root.anchor):
        raise DefinitionError("root", "root-too-wide")
    for home in homes:
        if Path(os.path.realpath(home)).is_relative_to(root):
            raise DefinitionError("root", "root-is-home", str(root))
    return root


def _refuse_files_inside_toolchains(document: Document, root: Path) -> None:
    if document.review_verification is None:
        return
    for toolchain in document.review_verification.toolchains:
        if not Path(toolchain).is_relative_to(root):
            continue
        inside = Path(toolchain).relative_to(root)
        for registered in registered_paths(document):
            if Path(registered.path).is_relative_to(inside):
                raise DefinitionError(registered.field, "inside-toolchain", toolchain)
