"""Makes the benchmarks importable as their own command does: `from benchmarks.harness.row import ...`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))


@pytest.fixture
def root() -> Path:
    return ROOT
