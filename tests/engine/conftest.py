"""Makes the tests' own modules importable: `from engine.script import ...`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from engine.script import Script


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script.begin(tmp_path)
