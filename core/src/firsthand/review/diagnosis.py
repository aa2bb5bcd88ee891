"""Reading a preflight's diagnosis back, and holding a set-up against it."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

from firsthand.canonical import StrictJSONError, canonical_bytes, parse_strict
from firsthand.review.answer import output_schema
from firsthand.review.interface import Diagnosis, PluginIdentity, ProgramIdentity, ReviewError, ReviewKind
from firsthand.review.tools import schemas_digest, tool_schemas

PREFLIGHT_CODE: Final = "tool_preflight_missing"

_LIMIT_BYTES: Final = 1024 * 1024
_NEXT: Final = "run `firsthand preflight` again and use what it writes"


def parse_diagnosis(raw: bytes, where: str) -> Diagnosis:
    """Read what `firsthand preflight` wrote.

    Args:
        raw: the file's bytes.
        where: how messages name the file.

    Raises:
        ReviewError: it is no diagnosis, or holds what only a definition may hold.
    """
    try:
        value = parse_strict(raw, limit_bytes=_LIMIT_BYTES)
    except StrictJSONError as error:
        raise _missing(f"the diagnosis is not strict JSON: {error}", where) from error
    if isinstance(value, dict) and "reviewVerification" in value:
        raise _missing("a diagnosis holds no reviewVerification: that belongs into the definition", where)
    try:
        return Diagnosis.model_validate_json(canonical_bytes(value))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the diagnosis"
        raise _missing(f"{field}: {first['msg']}", where) from error


def expected_schemas_digest(kind: ReviewKind) -> str:
    """The digest that a diagnosis of this kind must show, by this version of the host."""
    return schemas_digest(tool_schemas() if kind == "tools" else (), output_schema())


def check_diagnosis(
    diagnosis: Diagnosis, *, kind: ReviewKind, plugin: PluginIdentity, program: ProgramIdentity, where: str = ""
) -> None:
    """Refuse a diagnosis that is not of this set-up.

    Args:
        diagnosis: as it was read, or as a preflight has just brought it.
        kind: of the review at hand.
        plugin: the provider that is installed.
        program: the reviewer program that it would drive now.
        where: how messages name the diagnosis.

    Raises:
        ReviewError: `tool_preflight_missing`, naming the first difference.
    """
    differences = (
        ("kind", diagnosis.kind, kind),
        ("provider", diagnosis.provider, plugin),
        ("program", diagnosis.program, program),
        ("toolSchemasDigest", diagnosis.tool_schemas_digest, expected_schemas_digest(kind)),
    )
    for field, found, wanted in differences:
        if found != wanted:
            raise _missing(f"the diagnosis is of another set-up: its {field} is {found}, now {wanted}", where or field)
    if diagnosis.budget.timeout_ms == 0 or diagnosis.budget.max_turns == 0:
        raise _missing("the diagnosis has no budget", where or "budget")


def _missing(message: str, where: str) -> ReviewError:
    return ReviewError(message, where=where, next_step=_NEXT, code=PREFLIGHT_CODE)
