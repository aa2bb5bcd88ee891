"""Reading a scenario file, JSON or TOML, strictly: a slip in a scenario must not look like a fault of the reviewer."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_args

from firsthand.errors import UsageError
from firsthand_claude.scripted.scenario import STRUCTURED_OUTPUT, Call, Fault, FaultKind, Scenario, Turn

LIMIT_BYTES: Final = 1024 * 1024
LIMIT_TURNS: Final = 256
LIMIT_CALLS: Final = 64
LIMIT_DELAY_MS: Final = 600_000
LIMIT_TIMES: Final = 1000


class ScenarioError(UsageError):
    """The scenario file can't be used; `where` names the field."""


def read_scenario(path: Path) -> Scenario:
    """Read a scenario: TOML when the name ends in `.toml`, else JSON. At most 1 MiB.

    Raises:
        ScenarioError: it can't be read, is too large, or is no scenario.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise _refusal(str(path), f"can't be read: {error.strerror}") from error
    return parse_scenario(raw, toml=path.suffix == ".toml")


def parse_scenario(raw: bytes, *, toml: bool = False) -> Scenario:
    """The scenario in these bytes.

    Raises:
        ScenarioError: too large, not JSON or TOML, an unknown field, a value of the wrong type or beyond its limit.
    """
    if len(raw) > LIMIT_BYTES:
        raise _refusal("", f"larger than {LIMIT_BYTES} bytes")
    try:
        text = raw.decode("utf-8")
        value = tomllib.loads(text) if toml else json.loads(text, object_pairs_hook=_unique)
    except RecursionError as error:
        raise _refusal("", "nested too deeply") from error
    except ValueError as error:
        raise _refusal("", f"not {'TOML' if toml else 'JSON'}: {error}") from error
    fields = _object(value, "", {"name", "turns"})
    name = _text(fields.get("name"), "name")
    turns = _list(fields.get("turns"), "turns", LIMIT_TURNS)
    if not turns:
        raise _refusal("turns", "a scenario needs at least one turn")
    return Scenario(name, tuple(_turn(turn, f"turns[{position}]") for position, turn in enumerate(turns)))


def _turn(value: object, where: str) -> Turn:
    fields = _object(value, where, {"text", "calls", "answer", "fault", "delayMs", "times"})
    calls = [
        _call(call, f"{where}.calls[{position}]")
        for position, call in enumerate(_list(fields.get("calls", []), f"{where}.calls", LIMIT_CALLS))
    ]
    if "answer" in fields:
        calls.append(Call(STRUCTURED_OUTPUT, fields["answer"]))
    return Turn(
        text=_text(fields.get("text", ""), f"{where}.text"),
        calls=tuple(calls),
        fault=_fault(fields["fault"], f"{where}.fault") if "fault" in fields else None,
        delay_ms=_number(fields.get("delayMs", 0), f"{where}.delayMs", LIMIT_DELAY_MS),
        times=_number(fields.get("times", 1), f"{where}.times", LIMIT_TIMES),
    )


def _call(value: object, where: str) -> Call:
    fields = _object(value, where, {"tool", "arguments"})
    return Call(_text(fields.get("tool"), f"{where}.tool"), fields.get("arguments", {}))


def _fault(value: object, where: str) -> Fault:
    fields = _object(value, where, {"kind", "status"})
    kind = fields.get("kind")
    known: tuple[FaultKind, ...] = get_args(FaultKind)
    for candidate in known:
        if kind == candidate:
            if (candidate == "status") != ("status" in fields):
                raise _refusal(where, 'status stands exactly with kind "status"')
            status = _number(fields.get("status", 0), f"{where}.status", 599)
            if candidate == "status" and status < 400:
                raise _refusal(f"{where}.status", "not an error status (400 to 599)")
            return Fault(candidate, status)
    raise _refusal(f"{where}.kind", f"one of {', '.join(known)}")


def _object(value: object, where: str, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _refusal(where, "not an object")
    if unknown := sorted(value.keys() - known):
        raise _refusal(f"{where}.{unknown[0]}".lstrip("."), "no such field")
    return value


def _list(value: object, where: str, limit: int) -> list[Any]:
    if not isinstance(value, list):
        raise _refusal(where, "not a list")
    if len(value) > limit:
        raise _refusal(where, f"{len(value)} entries, at most {limit}")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise _refusal(where, "not a text")
    return value


def _number(value: object, where: str, limit: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= limit:
        raise _refusal(where, f"not a whole number from 0 to {limit}")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return result


def _refusal(where: str, message: str) -> ScenarioError:
    return ScenarioError(f"the scenario is not usable: {message}", where=where, next_step="see docs/scripted-model.md")
