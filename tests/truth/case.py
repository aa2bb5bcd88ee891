"""One hostile suite and what may be said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from checks.yard import NODE, PYTEST, UNITTEST, Yard, cargo_root, go_root

VALUE = "def add(a, b):\n    return a + b\n\n\ndef unused():\n    return 1  # never called\n"
BREAK = ("return a + b", "return a - b")
UNITTEST_FILE = """\
import unittest
from value import add


class Add(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(add(1, 2), 3)

    def test_zero(self):
        self.assertEqual(add(0, 0), 0)
"""
PYTEST_FILE = """\
from value import add


def test_sum():
    assert add(1, 2) == 3


def test_zero():
    assert add(0, 0) == 0
"""
SH = "/usr/bin/sh"


@dataclass(frozen=True)
class Case:
    """One suite, with a mutation or without.

    Attributes:
        name: unique.
        files: path to content.
        command: argv of its one check.
        expected: every (status or verdict, cause) that is true of it.
        mutation: old and new in `path`; without it the check itself is judged.
        fields: for the yard.
        quick: part of the ordinary test run; the others run in the corpus' own command.
        needs: why it can't run here, or the empty string.
    """

    name: str
    files: Mapping[str, bytes | str]
    command: Sequence[str]
    expected: frozenset[tuple[str, str]]
    mutation: tuple[str, str] | None = None
    path: str = "value.py"
    fields: Mapping[str, Any] = field(default_factory=dict)
    quick: bool = False
    needs: str = ""

    def observe(self, folder: Path) -> tuple[str, str]:
        """Run it once in a yard below `folder`, every record recomputed: status or verdict, and the cause."""
        yard = Yard(folder, self.files, self.command, mutation_paths=(self.path,), **self.fields)
        if self.mutation is None:
            run = yard.check()
            return run.status, run.cause
        result = yard.mutate(self.mutation, path=self.path)[0]
        return result.verdict, result.cause


@dataclass
class Tally:
    """What a number of rounds came to."""

    rounds: int = 0
    false_catches: list[str] = field(default_factory=list)
    false_greens: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def add(self, case: Case, seen: tuple[str, str]) -> None:
        """Sort one observation: true, or which kind of false."""
        self.rounds += 1
        if seen in case.expected:
            return
        line = f"{case.name}: {seen[0]} ({seen[1]}), expected one of {sorted(case.expected)}"
        kinds = {"detected": self.false_catches, "passed": self.false_greens}
        kinds.get(seen[0], self.others).append(line)


def check(name: str, command: Sequence[str], files: Mapping[str, bytes | str], *expected: str, **options: Any) -> Case:
    """A case without a mutation; each expectation is `status cause`."""
    return Case(name, files, command, _pairs(expected), **_options(options))


def unittest(
    name: str, mutation: tuple[str, str], *expected: str, test: str = UNITTEST_FILE, value: str = VALUE, **options: Any
) -> Case:
    """A mutation of `value.py` seen by a unittest suite."""
    files = {"value.py": value, "test_value.py": test, **options.pop("files", {})}
    return Case(name, files, UNITTEST, _pairs(expected), mutation, **_options(options))


def pytest(
    name: str, mutation: tuple[str, str], *expected: str, test: str = PYTEST_FILE, value: str = VALUE, **options: Any
) -> Case:
    """A mutation of `value.py` seen by a pytest suite."""
    files = {"value.py": value, "test_value.py": test, **options.pop("files", {})}
    return Case(name, files, options.pop("command", PYTEST), _pairs(expected), mutation, **_options(options))


def script(name: str, text: str, mutation: tuple[str, str] | None, *expected: str, **options: Any) -> Case:
    """A shell script as the check, judged by its exit code or by the runner that `runner` names."""
    files = {"value.py": VALUE, "check.sh": text, **options.pop("files", {})}
    return Case(name, files, (SH, "check.sh"), _pairs(expected), mutation, **_options(options))


def node(name: str, tests: str, mutation: tuple[str, str] | None, *expected: str, **options: Any) -> Case:
    """A suite for node's own runner."""
    value = options.pop("value", "export function add(a, b) {\n  return a + b;\n}\n")
    files = {"value.mjs": value, "tests/value.test.mjs": tests}
    command = (NODE or "/usr/bin/node", "--test", *options.pop("flags", ()), "tests/value.test.mjs")
    needs = "" if NODE else "node is not installed"
    return Case(name, files, command, _pairs(expected), mutation, "value.mjs", needs=needs, **_options(options))


def cargo(name: str, library: str, mutation: tuple[str, str] | None, *expected: str, **options: Any) -> Case:
    """A Rust crate tested by cargo."""
    root = cargo_root()
    program = str(root / "bin" / "cargo") if root else "/usr/bin/cargo"
    files = {"Cargo.toml": '[package]\nname = "v"\nversion = "0.1.0"\nedition = "2021"\n', "src/lib.rs": library}
    needs = "" if root else "cargo is not installed"
    options = {"timeout_ms": 120_000, "path_entries": (Path(program).parent,), "needs": needs, **options}
    argv = (program, "test", "--offline")
    return Case(name, files, argv, _pairs(expected), mutation, "src/lib.rs", **_options(options))


def go(name: str, files: Mapping[str, str], mutation: tuple[str, str] | None, *expected: str, **options: Any) -> Case:
    """A Go module tested by go; every run compiles the standard library anew, since nothing is carried over."""
    root = go_root()
    program = str(root / "bin" / "go") if root else "/usr/bin/go"
    options = {
        "timeout_ms": 240_000,
        "path_entries": (Path(program).parent,),
        "needs": "" if root else "no Go distribution: set FIRSTHAND_TEST_GO to one",
        **options,
    }
    path = options.pop("mutated", "v.go")
    return Case(
        name,
        {"go.mod": "module v\n\ngo 1.20\n", **files},
        (program, "test", "./..."),
        _pairs(expected),
        mutation,
        path,
        **_options(options),
    )


def report_of(program: str) -> str:
    """A conftest that does something with pytest's report once it is written; `report` is its path."""
    return f"""\
import os, re, sys, atexit
report = re.search(r"--junitxml=(\\S+)", os.environ["PYTEST_ADDOPTS"])[1]


@atexit.register
def _():
    {program}
"""


def loader(folder: str) -> str:
    """A test file that imports `value` from another folder than the registered one."""
    return f"import sys\nsys.path.insert(0, {folder!r})\n{UNITTEST_FILE}"


def _pairs(texts: Sequence[str]) -> frozenset[tuple[str, str]]:
    pairs = (text.split(" ") for text in texts)
    return frozenset((first, second) for first, second in pairs)


def _options(options: dict[str, Any]) -> dict[str, Any]:
    known: dict[str, Any] = {name: options.pop(name) for name in ("quick", "needs") if name in options}
    return {**known, "fields": options}
