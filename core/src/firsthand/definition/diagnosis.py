"""Where and why bytes are not strict JSON: read once more leniently, only to name the field. Nothing read is used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from firsthand.canonical import MAX_SAFE_INTEGER, StrictJSONError
from firsthand.definition.reasons import DefinitionError

DOCUMENT_LIMIT_BYTES: Final = 2 * 1024 * 1024
DOCUMENT_LIMIT_DEPTH: Final = 16

_LONGEST_SAFE: Final = len(f"-{MAX_SAFE_INTEGER}")


@dataclass(frozen=True, slots=True)
class _Fault:
    """Stands in the lenient value where strict JSON is broken."""

    reason: str
    detail: str
    key: str = ""


def diagnose(raw: bytes, error: StrictJSONError) -> DefinitionError:
    """The refusal, with field and reason, of bytes that `parse_strict` refused with this error."""
    if len(raw) > DOCUMENT_LIMIT_BYTES:
        return DefinitionError("", "document-too-large", f"{len(raw)} bytes")
    if raw.startswith(b"\xef\xbb\xbf"):
        return DefinitionError("", "byte-order-mark")
    try:
        value = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_object,
            parse_float=lambda literal: _Fault("float", literal[:40]),
            parse_int=_integer,
            parse_constant=lambda literal: _Fault("not-a-number", literal),
        )
    except UnicodeDecodeError as fault:
        return DefinitionError("", "not-utf8", f"at byte {fault.start}")
    except RecursionError:
        return DefinitionError("", "too-deep")
    except json.JSONDecodeError as fault:
        return DefinitionError("", "not-json", f"{fault.msg}, line {fault.lineno}, column {fault.colno}")
    return next(_faults(value), None) or DefinitionError("", "not-json", str(error))


def field_below(field: str, step: str | int) -> str:
    """The field one step below another: `a.b` for a key, `a[3]` for a place in a list."""
    if isinstance(step, int):
        return f"{field}[{step}]"
    # A field's name may be foreign text of any length.
    shown = step if len(step) <= 100 else step[:100] + "..."
    return f"{field}.{shown}" if field else shown


def _faults(value: object) -> Iterator[DefinitionError]:
    """All faults in the document's order, without recursion."""
    stack: list[tuple[object, str, int]] = [(value, "", 0)]
    while stack:
        node, field, depth = stack.pop()
        if isinstance(node, _Fault):
            yield DefinitionError(field_below(field, node.key) if node.key else field, node.reason, node.detail)
        elif isinstance(node, str):
            if _is_torn(node):
                yield DefinitionError(field, "lone-surrogate")
        elif isinstance(node, dict | list):
            if depth >= DOCUMENT_LIMIT_DEPTH:
                yield DefinitionError(field, "too-deep")
                continue
            steps: list[tuple[str | int, object]] = list(node.items() if isinstance(node, dict) else enumerate(node))
            for step, _ in steps:
                if isinstance(step, str) and _is_torn(step):
                    yield DefinitionError(field, "lone-surrogate", "in a key")
            stack.extend((child, field_below(field, step), depth + 1) for step, child in reversed(steps))


def _object(pairs: list[tuple[str, object]]) -> object:
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return _Fault("duplicate-key", "", key)
        seen.add(key)
    return result


def _integer(literal: str) -> object:
    if len(literal) > _LONGEST_SAFE or abs(int(literal)) > MAX_SAFE_INTEGER or literal == "-0":
        return _Fault("unsafe-integer", literal[:40])
    return int(literal)


def _is_torn(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text)
