"""A source folder, and definitions over what is in it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from firsthand.definition import Definition, parse_definition

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

Define = Callable[[Sequence[str]], Definition]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder.resolve()


@pytest.fixture
def define(source: Path) -> Define:
    """A definition that registers these files of the source, in this order."""

    def definition(files: Sequence[str]) -> Definition:
        document = {
            "runId": "run",
            "runtime": "test",
            "reviewVerification": {"files": list(files), "checks": [{"id": "check", "command": ["true"]}]},
        }
        return parse_definition(json.dumps(document).encode(), source, homes=[])

    return definition


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where copies go: not there yet, its parent is."""
    return tmp_path.resolve() / "copies"
