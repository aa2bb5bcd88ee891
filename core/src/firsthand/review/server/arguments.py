"""What a call gives, checked field by field, with refusals that the model can read and act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

LIMIT_ARGUMENT_BYTES: Final = 1024 * 1024
"""Longest text that is looked at; a longer one is refused whatever the field."""


class ArgumentError(ValueError):
    """The arguments are not what the tool takes; the message names the field."""


def check_fields(arguments: object, required: Sequence[str], optional: Sequence[str] = ()) -> Mapping[str, object]:
    """The arguments as an object with exactly the fields that the tool has.

    Raises:
        ArgumentError: no object, a field too many, or one too few.
    """
    if not isinstance(arguments, Mapping):
        raise ArgumentError("the arguments are not an object")
    unknown = sorted(str(name) for name in arguments if name not in {*required, *optional})
    if unknown:
        known = ", ".join((*required, *optional))
        raise ArgumentError(f"unknown field {unknown[0][:80]!r}; this tool takes {known}")
    missing = [name for name in required if name not in arguments]
    if missing:
        raise ArgumentError(f"the field {missing[0]!r} is missing")
    return arguments


def text_field(arguments: Mapping[str, object], name: str) -> str:
    """One text.

    Raises:
        ArgumentError: something else, too long, or no text that UTF-8 has.
    """
    value = arguments[name]
    if not isinstance(value, str):
        raise ArgumentError(f"{name} is not a text")
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise ArgumentError(f"{name} holds a lone surrogate") from error
    if size > LIMIT_ARGUMENT_BYTES:
        raise ArgumentError(f"{name} has {size} bytes, at most {LIMIT_ARGUMENT_BYTES} are accepted")
    return value


def offset_field(arguments: Mapping[str, object]) -> int:
    """The offset of a page; 0 where none, or null, is given.

    Raises:
        ArgumentError: no whole number from 0.
    """
    value = arguments.get("offset")
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ArgumentError("offset is not a whole number from 0")
    return value
