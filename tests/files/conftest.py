"""Makes `files.ordinary` and `files.flipping` importable, here and from other rooms' tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from files.ordinary import ground


@pytest.fixture
def users_folder() -> Iterator[Path]:
    """A folder that belongs to the ordinary user of `as_ordinary_user`."""
    with ground() as path:
        yield path
