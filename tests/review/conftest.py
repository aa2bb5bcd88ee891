"""Makes the yards beside these tests importable: `from review.court import ...`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from checks.yard import yard

__all__ = ["yard"]
