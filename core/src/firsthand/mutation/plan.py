"""Plans: strict JSON `[{check, path, old, new}]`, bounded, each entry exactly these four texts.

What a mutation asks for is judged one by one when it is applied; a plan that is not of this form is refused whole.
"""

from __future__ import annotations

from typing import Final

from firsthand.canonical import JSONValue, StrictJSONError, parse_strict
from firsthand.mutation.errors import PlanError
from firsthand.records import Mutation

LIMIT_PLAN_BYTES: Final = 16 * 1024 * 1024
LIMIT_MUTATIONS: Final = 1000

_FIELDS: Final = ("check", "path", "old", "new")
_SHAPE: Final = 'write a JSON array of objects with the texts "check", "path", "old" and "new", and nothing else'


def parse_plan(raw: bytes, where: str = "plan") -> tuple[Mutation, ...]:
    """Read a plan.

    Args:
        raw: the file's exact bytes.
        where: how messages call the plan.

    Raises:
        PlanError: not strict JSON, more than `LIMIT_PLAN_BYTES`, not 1 to `LIMIT_MUTATIONS` entries, or an entry with
            a missing, unknown or non-text field; the message names the entry.
    """
    try:
        value = parse_strict(raw, limit_bytes=LIMIT_PLAN_BYTES, limit_depth=4)
    except StrictJSONError as error:
        raise PlanError(f"the plan is not strict JSON: {error}", where=where, next_step=_SHAPE) from error
    if not isinstance(value, list):
        raise PlanError("the plan is not an array", where=where, next_step=_SHAPE)
    if not 1 <= len(value) <= LIMIT_MUTATIONS:
        message = f"the plan has {len(value)} mutations, 1 to {LIMIT_MUTATIONS} are accepted"
        raise PlanError(message, where=where, next_step="split the plan, or fill it")
    return tuple(_mutation(entry, f"{where}[{position}]") for position, entry in enumerate(value))


def _mutation(entry: JSONValue, where: str) -> Mutation:
    if not isinstance(entry, dict):
        raise PlanError("this entry is not an object", where=where, next_step=_SHAPE)
    if unknown := sorted(entry.keys() - set(_FIELDS)):
        raise PlanError(f"unknown field {unknown[0]!r}", where=where, next_step=_SHAPE)
    texts: dict[str, str] = {}
    for field in _FIELDS:
        text = entry.get(field)
        if not isinstance(text, str):
            raise PlanError("the field is missing or no text", where=f"{where}.{field}", next_step=_SHAPE)
        texts[field] = text
    return Mutation(**texts)
