"""What the rules need of a definition, read from the canonical JSON that the evidence carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast, get_args

from firsthand.canonical import JSONValue, StrictJSONError, parse_strict
from firsthand.records import RunnerName
from firsthand.rules.runner import runner_of

DEFAULT_TIMEOUT_MS: Final = 60_000
"""Limit of each command where the definition as written says none."""

_LIMIT_BYTES: Final = 4 * 1024 * 1024
_RUNNERS: Final[tuple[str, ...]] = get_args(RunnerName)


class FactsError(ValueError):
    """A definition's text does not hold what the rules rest on."""


@dataclass(frozen=True, slots=True)
class CheckFacts:
    """One registered check.

    Attributes:
        id: its id.
        command: the registered argv.
        explicit: the runner that the definition names, or None.
        runner: the runner that counts: the explicit one, what argv shows, else `exit`.
    """

    id: str
    command: tuple[str, ...]
    explicit: RunnerName | None

    @property
    def runner(self) -> RunnerName:
        """How this check's tests are counted."""
        return runner_of(self.command, self.explicit)

    @property
    def trusts_exit_code(self) -> bool:
        """Whether the definition itself accepts plain exit codes for this check."""
        return self.explicit == "exit"


@dataclass(frozen=True, slots=True)
class DefinitionFacts:
    """The part of a definition that verdicts and acceptance rest on."""

    checks: tuple[CheckFacts, ...]
    mutation_paths: tuple[str, ...]
    timeout_ms: int
    tool_less: bool
    """Whether the definition has no `reviewVerification`, so that nothing runs."""

    def check(self, check_id: str) -> CheckFacts | None:
        """The check of that id, or None when it is not registered."""
        return next((check for check in self.checks if check.id == check_id), None)


def definition_facts(canonical_definition: str) -> DefinitionFacts:
    """Read the facts from a definition's JSON text.

    Raises:
        FactsError: the text is not strict JSON, or lacks a field that the rules rest on. Evidence is hostile until
            verified, so nothing is assumed of its shape.
    """
    try:
        value = parse_strict(canonical_definition.encode("utf-8", "surrogatepass"), limit_bytes=_LIMIT_BYTES)
    except StrictJSONError as error:
        raise FactsError(f"the definition is not strict JSON: {error}") from error
    if not isinstance(value, dict):
        raise FactsError("the definition is not an object")
    section = value.get("reviewVerification")
    if section is None:
        return DefinitionFacts(checks=(), mutation_paths=(), timeout_ms=0, tool_less=True)
    if not isinstance(section, dict):
        raise FactsError("reviewVerification is not an object")
    checks = section.get("checks")
    timeout_ms = section.get("timeoutMs", DEFAULT_TIMEOUT_MS)
    if not isinstance(checks, list) or not isinstance(timeout_ms, int) or isinstance(timeout_ms, bool):
        raise FactsError("reviewVerification has no list of checks, or timeoutMs is no number")
    return DefinitionFacts(
        checks=tuple(_check_facts(check) for check in checks),
        mutation_paths=_texts(section.get("mutationPaths", []), "mutationPaths"),
        timeout_ms=timeout_ms,
        tool_less=False,
    )


def _check_facts(value: JSONValue) -> CheckFacts:
    if not isinstance(value, dict):
        raise FactsError("a check is not an object")
    identifier, runner = value.get("id"), value.get("runner")
    if not isinstance(identifier, str):
        raise FactsError("a check has no id")
    if runner is not None and runner not in _RUNNERS:
        raise FactsError(f"check {identifier}: unknown runner")
    return CheckFacts(
        id=identifier,
        command=_texts(value.get("command"), f"command of check {identifier}"),
        explicit=cast("RunnerName | None", runner),
    )


def _texts(value: JSONValue, what: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise FactsError(f"{what} is not a list")
    texts = [item for item in value if isinstance(item, str)]
    if len(texts) != len(value):
        raise FactsError(f"{what} holds something that is not text")
    return tuple(texts)
