"""Makes `tests` importable, and the fixtures that drive the program."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from e2e.fixtures import cold, honest, program, project, tree  # only now can it be found
from engine.script import Script

__all__ = ["cold", "honest", "program", "project", "tree"]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script.begin(tmp_path)
