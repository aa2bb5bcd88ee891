"""Strict JSON in, RFC 8785 canonical JSON out, and SHA-256 over exact bytes.

Strict means: UTF-8 without a byte order mark, one value and nothing after it, no duplicate keys at any depth (compared
after unescaping), no floats in any spelling, no integer beyond ±(2^53 - 1), no NaN or Infinity, no lone surrogate, a
bounded depth and size. Source: the contract's sections on the definition and on evidence. Nothing is normalised: NFC
and NFD spellings stay different bytes.
"""

from __future__ import annotations

import hashlib
import json
from typing import Final, NoReturn, TypeAlias

import rfc8785

MAX_SAFE_INTEGER: Final = 2**53 - 1
DEFAULT_LIMIT_BYTES: Final = 64 * 1024 * 1024
DEFAULT_LIMIT_DEPTH: Final = 64

_LONGEST_SAFE_INTEGER: Final = len(f"-{MAX_SAFE_INTEGER}")

JSONValue: TypeAlias = "bool | int | str | list[JSONValue] | dict[str, JSONValue] | None"


class StrictJSONError(ValueError):
    """The bytes are not strict JSON; the message says which rule they break.

    A plain `ValueError` on purpose: what it means (a bad definition, a bad plan, bad evidence) is for the reader of
    the bytes to say, with the code that belongs to it.
    """


def parse_strict(
    raw: bytes, *, limit_bytes: int = DEFAULT_LIMIT_BYTES, limit_depth: int = DEFAULT_LIMIT_DEPTH
) -> JSONValue:
    """Parse exactly one strict JSON value.

    Args:
        raw: the exact bytes as they were read.
        limit_bytes: more than this is refused before parsing.
        limit_depth: deepest nesting of arrays and objects; a bare scalar has depth 0.

    Raises:
        StrictJSONError: for every deviation that the module's text names.
    """
    if len(raw) > limit_bytes:
        raise StrictJSONError(f"{len(raw)} bytes, at most {limit_bytes} are accepted")
    if raw.startswith(b"\xef\xbb\xbf"):
        raise StrictJSONError("starts with a byte order mark")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StrictJSONError(f"not UTF-8 at byte {error.start}") from error
    try:
        value: JSONValue = json.loads(
            text,
            object_pairs_hook=_unique_object,
            parse_float=_refuse_float,
            parse_int=_safe_integer,
            parse_constant=_refuse_constant,
        )
    except StrictJSONError:
        raise
    except RecursionError as error:
        raise StrictJSONError(f"nested deeper than {limit_depth} levels") from error
    except ValueError as error:
        raise StrictJSONError(f"not JSON: {error}") from error
    _check_tree(value, limit_depth)
    return value


def canonical_bytes(value: JSONValue) -> bytes:
    """The RFC 8785 (JCS) form of a value: the same value always gives the same bytes.

    Raises:
        StrictJSONError: the value holds a float, an unsafe integer or a lone surrogate.
    """
    _check_tree(value, DEFAULT_LIMIT_DEPTH)
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as error:
        raise StrictJSONError(str(error)) from error


def sha256_hex(data: bytes | bytearray | memoryview) -> str:
    """Lower-case hexadecimal SHA-256 of exactly these bytes."""
    return hashlib.sha256(data).hexdigest()


def canonical_digest(value: JSONValue) -> str:
    """SHA-256 of the canonical bytes."""
    return sha256_hex(canonical_bytes(value))


def _unique_object(pairs: list[tuple[str, JSONValue]]) -> dict[str, JSONValue]:
    result: dict[str, JSONValue] = {}
    for key, value in pairs:
        if key in result:
            raise StrictJSONError(f"duplicate key {key!r}")
        result[key] = value
    return result


def _refuse_float(literal: str) -> NoReturn:
    raise StrictJSONError(f"floating-point number {literal[:40]}")


def _refuse_constant(literal: str) -> NoReturn:
    raise StrictJSONError(f"{literal} is not JSON")


def _safe_integer(literal: str) -> int:
    # The length is tested first: converting thousands of digits is slow, and Python refuses it beyond 4300.
    if len(literal) > _LONGEST_SAFE_INTEGER or abs(int(literal)) > MAX_SAFE_INTEGER:
        raise StrictJSONError(f"integer {literal[:40]} is outside the safe range of ±(2^53 - 1)")
    if literal == "-0":
        raise StrictJSONError("-0 is a second spelling of 0")
    return int(literal)


def _check_tree(value: JSONValue, limit_depth: int) -> None:
    """Refuse what may not stand in a value, without recursion: hostile input must not decide our stack's depth."""
    stack: list[tuple[JSONValue, int]] = [(value, 0)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, str):
            _check_text(node)
        elif isinstance(node, dict | list):
            if depth >= limit_depth:
                raise StrictJSONError(f"nested deeper than {limit_depth} levels")
            if isinstance(node, dict):
                for key in node:
                    _check_text(key)
                stack.extend((child, depth + 1) for child in node.values())
            else:
                stack.extend((child, depth + 1) for child in node)
        elif isinstance(node, float):
            raise StrictJSONError(f"floating-point number {node!r}")
        elif isinstance(node, int) and not isinstance(node, bool) and abs(node) > MAX_SAFE_INTEGER:
            raise StrictJSONError(f"integer {str(node)[:40]} is outside the safe range of ±(2^53 - 1)")


def _check_text(text: str) -> None:
    # isascii is a flag lookup; only text that needs it pays for the encode.
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise StrictJSONError(f"lone surrogate U+{ord(text[error.start]):04X} in a string") from error
