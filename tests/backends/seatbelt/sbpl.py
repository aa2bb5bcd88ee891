"""A reader of the small part of the Seatbelt profile language that the template uses; everything else is refused.

It knows the operations by name, so a misspelt one is an error here and not a rule that never matches on a Mac.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Expression: TypeAlias = "str | Text | tuple[Expression, ...]"
Action: TypeAlias = Literal["allow", "deny"]

OPERATIONS = frozenset(
    """
    appleevent-send distributed-notification-post
    file-ioctl file-map-executable file-read-data file-read-metadata file-read-xattr file-test-existence
    file-write-create file-write-data file-write-flags file-write-mode file-write-owner file-write-setugid
    file-write-times file-write-unlink file-write-xattr
    iokit-get-properties iokit-open iokit-set-properties
    ipc-posix-sem ipc-posix-shm-read-data ipc-posix-shm-write-create ipc-posix-shm-write-data
    job-creation lsopen
    mach-lookup mach-per-user-lookup mach-priv-host-port mach-priv-task-port mach-register mach-task-name
    network-bind network-inbound network-outbound
    nvram-delete nvram-get nvram-set
    process-exec process-exec-interpreter process-fork
    process-info-codesignature process-info-dirtycontrol process-info-listpids process-info-pidfdinfo
    process-info-pidinfo process-info-rusage process-info-setcontrol
    pseudo-tty signal sysctl-read sysctl-write system-socket user-preference-read
    """.split()  # noqa: SIM905 # reads better than quotes around each
)
WILDCARDS = frozenset(
    """
    file* file-read* file-write* iokit* ipc-posix-shm* mach* network* nvram* process* process-exec* process-info*
    sysctl*
    """.split()  # noqa: SIM905 # reads better than quotes around each
)
PATH_FILTERS = frozenset({"literal", "subpath"})
TEXT_FILTERS = frozenset({"sysctl-name", "sysctl-name-prefix", "ipc-posix-name", "ipc-posix-name-prefix"})
TARGETS = frozenset({"self", "same-sandbox", "others"})

_TOKEN = re.compile(r'\s*(?:;[^\n]*(?:\n|\Z)|(\()|(\))|"((?:[^"\\\n]|\\["\\])*)"|([a-z0-9*-]+))')


class SBPLError(ValueError):
    """The text is outside the part of the language that the oracle knows."""


@dataclass(frozen=True)
class Text:
    """A string, as told from a symbol."""

    value: str


@dataclass(frozen=True)
class Filter:
    """One condition; `written` is how it stands in the profile, parameters unresolved."""

    kind: str
    value: str
    written: str


@dataclass(frozen=True)
class Rule:
    """One rule: the filters are alternatives, none means always."""

    action: Action
    operations: tuple[str, ...]
    filters: tuple[Filter, ...]


def read_rules(text: str, parameters: Mapping[str, str]) -> tuple[Rule, ...]:
    """The rules of a profile, in order.

    Raises:
        SBPLError: syntax, an operation or a filter that is not known, a parameter without a value, a path that is not
            in the kernel's spelling, or a profile that does not begin with `(version 1) (deny default)`.
    """
    expressions = list(_expressions(text))
    if expressions[:2] != [("version", "1"), ("deny", "default")]:
        raise SBPLError("a profile begins with (version 1) and (deny default)")
    return tuple(_rule(expression, parameters) for expression in expressions[1:])


def _expressions(text: str) -> Iterator[Expression]:
    if not text.isascii():
        raise SBPLError("a profile is ASCII")
    stack: list[list[Expression]] = [[]]
    position = 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None:
            raise SBPLError(f"not understood: {text[position : position + 30]!r}")
        position = match.end()
        opening, closing, string, symbol = match.groups()
        if opening:
            stack.append([])
        elif closing:
            if len(stack) == 1:
                raise SBPLError("one ) too many")
            done = tuple(stack.pop())
            stack[-1].append(done)
        elif string is not None:
            stack[-1].append(Text(re.sub(r"\\(.)", r"\1", string)))
        elif symbol is not None:
            stack[-1].append(symbol)
    if len(stack) != 1:
        raise SBPLError("a ( is never closed")
    yield from stack[0]


def _rule(expression: Expression, parameters: Mapping[str, str]) -> Rule:
    if not isinstance(expression, tuple) or not expression or expression[0] not in ("allow", "deny"):
        raise SBPLError(f"neither allow nor deny: {expression!r}")
    operations: list[str] = []
    rest = list(expression[1:])
    while rest and isinstance(rest[0], str):
        operation = rest.pop(0)
        assert isinstance(operation, str)
        if operation not in OPERATIONS | WILDCARDS | {"default"}:
            raise SBPLError(f"unknown operation {operation}")
        operations.append(operation)
    if not operations:
        raise SBPLError(f"no operation: {expression!r}")
    filters = tuple(_filter(one, parameters) for one in rest)
    action: Action = "allow" if expression[0] == "allow" else "deny"
    return Rule(action, tuple(operations), filters)


def _filter(expression: Expression, parameters: Mapping[str, str]) -> Filter:
    match expression:
        case ("target", str() as target) if target in TARGETS:
            return Filter("target", target, f"(target {target})")
        case (str() as kind, value) if kind in PATH_FILTERS | TEXT_FILTERS:
            text, written = _text(value, parameters)
            if kind in PATH_FILTERS:
                _refuse_odd_path(text)
            return Filter(kind, text, f"({kind} {written})")
        case _:
            raise SBPLError(f"unknown filter: {expression!r}")


def _text(expression: Expression, parameters: Mapping[str, str]) -> tuple[str, str]:
    match expression:
        case Text(value):
            return value, f'"{value}"'
        case ("param", Text(name)):
            if name not in parameters:
                raise SBPLError(f"parameter {name} has no value")
            return parameters[name], f'(param "{name}")'
        case _:
            raise SBPLError(f"neither a string nor a parameter: {expression!r}")


def _refuse_odd_path(path: str) -> None:
    parts = path.split("/")
    if path != "/" and (parts[0] != "" or any(part in ("", ".", "..") for part in parts[1:])):
        raise SBPLError(f"not a path in the kernel's spelling: {path!r}")
