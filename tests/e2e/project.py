"""Small projects with a definition."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PYTHON = os.path.realpath(sys.executable)
"""The interpreter behind the virtual environment: it needs nothing but its own installation."""

SHELL = "/bin/sh"

CART = "def total(prices):\n    return sum(prices)\n"
TEST_CART = """\
import unittest

import cart


class Total(unittest.TestCase):
    def test_adds_up(self):
        self.assertEqual(cart.total([1, 2]), 3)
"""


@dataclass(frozen=True)
class Project:
    """A folder with files and a definition."""

    root: Path

    @property
    def config(self) -> Path:
        """Its definition."""
        return self.root / "firsthand.json"

    def write(self, path: str, text: str) -> Path:
        """Write one file."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def define(
        self, *checks: tuple[str, Sequence[str]], files: Sequence[str], runner: str | None = None, **fields: Any
    ) -> Path:
        """Write the definition; `fields` go into reviewVerification, but for runId and root."""
        top = {"runId": fields.pop("runId", "run-1"), "runtime": "test"}
        if "root" in fields:
            top["root"] = fields.pop("root")
        listed: list[dict[str, Any]] = [{"id": name, "command": list(command)} for name, command in checks]
        for check in listed:
            if runner is not None:
                check["runner"] = runner
        verification = {"files": list(files), "checks": listed, "mutationPaths": [], **fields}
        self.config.write_text(json.dumps({**top, "reviewVerification": verification}))
        return self.config

    def shell(self, *scripts: tuple[str, str], **fields: Any) -> Path:
        """One check of plain exit code for each script, over one registered file."""
        self.write("note.txt", "a note\n")
        files = fields.pop("files", ["note.txt"])
        checks = [(name, [SHELL, "-c", script]) for name, script in scripts]
        return self.define(*checks, files=files, runner="exit", **fields)


def cart(root: Path, **fields: Any) -> Project:
    """A project with one honest unittest check."""
    project = Project(root)
    root.mkdir(exist_ok=True)
    project.write("cart.py", CART)
    project.write("test_cart.py", TEST_CART)
    project.define(
        ("total", [PYTHON, "-m", "unittest", "-v", "test_cart"]),
        files=["cart.py", "test_cart.py"],
        mutationPaths=["cart.py"],
        **fields,
    )
    return project
