"""What a profile should answer, by the published measurements of how Seatbelt looks rules up.

This reads text. It stands in for no Mac: a kernel may differ from the model, and nothing that passes here counts as a
platform's pass. The model errs to the open side: where sources disagree whether an operation is closed by its
wildcard, it is taken as open until it is closed by its own name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from backends.seatbelt.sbpl import OPERATIONS, WILDCARDS, Action, Filter, Rule, SBPLError, read_rules

OPEN_BY_DEFAULT = ("nvram*", "iokit-get-properties", "file-map-executable", "process-info*")
"""`(deny default)` does not reach these: before any rule they are allowed at that level."""

OPEN_BY_NAME = ("process-info-pidinfo", "process-info-setcontrol")
"""Taken as open at their own level too: one measurement needed the wildcard's deny and the member's own together."""


@dataclass(frozen=True)
class Subject:
    """What an operation is about; only what fits the operation is set."""

    path: str = ""
    target: str = ""
    name: str = ""


class Oracle:
    """Answers for one profile.

    Args:
        rules: as read.
        last_match_wins: False looks up by level (an operation's own rules, then its wildcards', then default; filtered
            rules before unfiltered). True is the rule of thumb of most tutorials, the last matching rule of any level:
            a profile that answers alike under both depends on neither.
    """

    def __init__(self, rules: Sequence[Rule], *, last_match_wins: bool = False) -> None:
        self._rules = tuple(rules)
        self._last_match_wins = last_match_wins

    @classmethod
    def of(cls, text: str, parameters: Mapping[str, str]) -> Oracle:
        return cls(read_rules(text, parameters))

    def allows(self, operation: str, subject: Subject) -> bool:
        if operation not in OPERATIONS:
            raise SBPLError(f"unknown operation {operation}")
        if subject.path and (not subject.path.startswith("/") or "//" in subject.path or "/../" in subject.path):
            raise SBPLError(f"not a path in the kernel's spelling: {subject.path!r}")
        levels = levels_of(operation)
        if self._last_match_wins:
            return self._last_match(operation, levels, subject) == "allow"
        for level in levels:
            if answer := self._at_level(level, subject):
                return answer == "allow"
        raise SBPLError("a profile without a default")

    def _at_level(self, level: str, subject: Subject) -> Action | None:
        filtered: Action | None = None
        unfiltered: Action | None = "allow" if level in (*OPEN_BY_DEFAULT, *OPEN_BY_NAME) else None
        for rule in self._rules:
            if level not in rule.operations:
                continue
            if not rule.filters:
                unfiltered = rule.action
            elif any(matches(one, subject) for one in rule.filters):
                filtered = rule.action
        return filtered or unfiltered

    def _last_match(self, operation: str, levels: Sequence[str], subject: Subject) -> Action:
        open_levels = {level for level in levels if level in OPEN_BY_DEFAULT or level == operation in OPEN_BY_NAME}
        answer: Action = "deny"
        for rule in self._rules:
            if rule.operations == ("default",):
                answer = "allow" if open_levels else rule.action
            elif set(rule.operations) & set(levels) and (
                not rule.filters or any(matches(one, subject) for one in rule.filters)
            ):
                answer = rule.action
        return answer


def levels_of(operation: str) -> list[str]:
    """The names under which rules for an operation are looked up, nearest first."""
    wildcards = [name for name in WILDCARDS if operation.startswith(name[:-1])]
    return [operation, *sorted(wildcards, key=len, reverse=True), "default"]


def matches(one: Filter, subject: Subject) -> bool:
    tests: dict[str, Callable[[], bool]] = {
        "literal": lambda: subject.path == one.value,
        # Component by component, and the folder itself too.
        "subpath": lambda: subject.path == one.value or subject.path.startswith(one.value.rstrip("/") + "/"),
        "target": lambda: subject.target == one.value or (one.value, subject.target) == ("same-sandbox", "self"),
        "sysctl-name": lambda: subject.name == one.value,
        "sysctl-name-prefix": lambda: subject.name.startswith(one.value),
        "ipc-posix-name": lambda: subject.name == one.value,
        "ipc-posix-name-prefix": lambda: subject.name.startswith(one.value),
    }
    return tests[one.kind]()
