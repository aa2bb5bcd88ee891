"""Which runner a registered argv names, and which exit codes of it are an ordinary failure.

Detection reads argv alone and never a file of the project. It only decides how tests are counted: a command whose
runner is not recognised is judged by its exit code and labelled so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from firsthand.records import RunnerName

_PYTHON: Final = re.compile(r"(?:python|pypy)[0-9.]*(?:\.exe)?\Z")
_NODE_VALUE_OPTIONS: Final = frozenset(
    {"-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions"}
)
_CARGO_VALUE_OPTIONS: Final = frozenset({"--color", "--config", "-Z", "-C"})
FIRST_SIGNAL_EXIT_CODE: Final = 128
"""From here on an exit code may be a shell's spelling of a signal (128 + n)."""


def runner_of(command: Sequence[str], explicit: RunnerName | None) -> RunnerName:
    """The runner of a check: the definition's own word first, then what argv shows, else `exit`."""
    return explicit or detect_runner(command) or "exit"


def detect_runner(command: Sequence[str]) -> RunnerName | None:  # noqa: PLR0911 # one return a rule: it reads as the table that it is
    """The runner that argv itself names, or None.

    Recognised are `pytest`, `python -m pytest`, `python path/to/pytest`, `python -m unittest`, `node --test`,
    `go test` and `cargo test`, each with options before and after. Wrappers (`make`, `npm`, `tox`, a shell) are not
    looked through: there the definition names the runner.
    """
    if not command:
        return None
    program = command[0].rpartition("/")[2]
    rest = list(command[1:])
    if program in {"pytest", "py.test"}:
        return "pytest"
    if _PYTHON.match(program):
        return _python_runner(rest)
    if program in {"node", "nodejs"}:
        return "node-test" if _node_tests(rest) else None
    if program == "go":
        words = rest[2:] if rest[:1] == ["-C"] else rest
        return "go-test" if words[:1] == ["test"] else None
    if program == "cargo":
        return "cargo-test" if _first_cargo_word(rest) in {"test", "t"} else None
    return None


def is_ordinary_failure(runner: RunnerName, exit_code: int) -> bool:
    """Whether this exit code is how the runner says "a test failed", and nothing else."""
    match runner:
        case "pytest" | "unittest" | "node-test" | "go-test":
            return exit_code == 1
        case "cargo-test":
            return exit_code == 101
        case "exit":
            return 1 <= exit_code <= 125


def _python_runner(arguments: list[str]) -> RunnerName | None:
    position = 0
    while position < len(arguments):
        word = arguments[position]
        position += 1
        if word == "--check-hash-based-pycs":
            position += 1
        elif word.startswith("-") and len(word) > 1:
            for index, letter in enumerate(word[1:], start=1):
                attached = word[index + 1 :]
                if letter == "c":
                    return None
                if letter == "m":
                    module = attached or (arguments[position] if position < len(arguments) else "")
                    return _python_module(module)
                if letter in "WX":
                    position += 0 if attached else 1
                    break
        else:
            return _python_module(word.rpartition("/")[2]) if "/" in word else None
    return None


def _python_module(module: str) -> RunnerName | None:
    if module in {"pytest", "py.test"}:
        return "pytest"
    return "unittest" if module == "unittest" else None


def _node_tests(arguments: list[str]) -> bool:
    position = 0
    while position < len(arguments):
        word = arguments[position]
        if word == "--test":
            return True
        if not word.startswith("-") or word == "--":
            return False
        position += 2 if word in _NODE_VALUE_OPTIONS else 1
    return False


def _first_cargo_word(arguments: list[str]) -> str:
    position = 0
    while position < len(arguments):
        word = arguments[position]
        if not word.startswith(("-", "+")):
            return word
        position += 2 if word in _CARGO_VALUE_OPTIONS else 1
    return ""
