"""Makes the desk beside these tests importable: `from ledger.desk import ...`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from firsthand.ledger import Ledger
from firsthand.residues import StateDirectory


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory.open(tmp_path / "state")


@pytest.fixture
def ledger(state: StateDirectory) -> Iterator[Ledger]:
    with Ledger.open(state) as opened:
        yield opened
