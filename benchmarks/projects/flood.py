"""Checks that print and report as much as they are let."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.projects.definition import write_definition


@dataclass(frozen=True, slots=True)
class Flood:
    """One way to be too much.

    Attributes:
        about: ends the sentence "a check that …".
        code: Python source of the check's script.
        arguments: between the interpreter and the end; names the script by default.
        checks: how many times it is registered.
    """

    about: str
    code: str
    arguments: tuple[str, ...] = ("flood.py",)
    checks: int = 1


_FORGED_PYTEST: Final = """
import os, re, sys
file = re.search(r"--junitxml=(\\S+)", os.environ["PYTEST_ADDOPTS"])[1]
limit = 16 * 1024 * 1024 - 4096
with open(file, "w") as report:
    report.write('<testsuites><testsuite>')
    written = number = 0
    while written < limit:
        message = "m" * 300
        written += report.write(
            f'<testcase classname="c{number:07}" name="t"><failure message="{message}"/></testcase>'
            if number % 2 else f'<testcase classname="c" name="t{number:07}"/>'
        )
        number += 1
    report.write('</testsuite></testsuites>')
sys.exit(1)
"""

FLOODS: Final[Mapping[str, Flood]] = {
    "quiet": Flood("prints nothing", "pass"),
    "endless": Flood(
        "prints without end",
        "import sys\nwhile True:\n    sys.stdout.write('0123456789abcdef' * 4096 + '\\n')",
    ),
    "gigabyte": Flood(
        "prints 1 GiB without a line feed",
        "import os\nblock = b'x' * (1 << 20)\nfor _ in range(1024):\n    os.write(1, block)",
    ),
    "both": Flood(
        "floods both streams from many threads",
        "import os, threading\n"
        "def pour(fd):\n    while True:\n        os.write(fd, b'line\\n' * 4096)\n"
        "for fd in (1, 2) * 8:\n    threading.Thread(target=pour, args=(fd,)).start()",
    ),
    "brim": Flood(
        "fills both streams to the brim, eight times",
        "import os\nfor fd in (1, 2):\n    left = 1024 * 1024\n"
        "    while left:\n        left -= os.write(fd, b'\\xff' * min(left, 65536))",
        checks=8,
    ),
    "names": Flood(
        "prints 1 MiB of failed unittest names",
        "import sys\n"
        "for number in range(8000):\n    print(f'FAIL: test_{number:06} (test.Case)', file=sys.stderr)\n"
        "print('-' * 70 + '\\nRan 8000 tests in 1.0s\\n\\nFAILED (failures=8000)', file=sys.stderr)\n"
        "sys.exit(1)",
        arguments=("-m", "unittest"),
    ),
    "report": Flood("forges a pytest report of 16 MiB", _FORGED_PYTEST, arguments=("-m", "pytest")),
    "disk": Flood(
        "fills its copy with small files",
        "import os\nnumber = 0\nwhile True:\n"
        "    os.close(os.open(f'f{number:07}', os.O_CREAT | os.O_WRONLY))\n    number += 1",
    ),
}


def flood_project(root: Path, name: str) -> Path:
    """Make the project of one flood in a new folder; gives its definition's path."""
    flood = FLOODS[name]
    root.mkdir()
    module = flood.arguments[-1]
    script = module if module.endswith(".py") else f"{module}.py"
    (root / script).write_text(flood.code + "\n", encoding="utf-8")
    (root / "README.md").write_text("A flood.\n", encoding="utf-8")
    python = str(Path(sys.executable).resolve())
    command = [python, *flood.arguments]
    return write_definition(
        root,
        files=["README.md", script],
        checks=[{"id": f"flood-{number}", "command": command} for number in range(flood.checks)],
        timeout_ms=20_000,
    )
