"""A suite that fails by chance: no single run can tell chance from a catch, so the series must take catches back."""

from __future__ import annotations

from pathlib import Path

from checks.yard import UNITTEST, Yard
from firsthand.rules import standing_catches

ASKED = 12
"""Mutations of dead code. The suite fails in half of its runs: 13 green ones happen once in 8192 series."""

VALUE = "def add(a, b):\n    return a + b\n\n\ndef unused():\n" + "".join(
    f"    x{n} = {n}\n" for n in range(100, 100 + ASKED)
)
TEST = """\
import os, unittest
import value


class T(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(value.add(1, 2), 3)

    def test_chance(self):
        self.assertLess(os.urandom(1)[0], 128)
"""


def false_catches(folder: Path) -> int:
    """How many catches of dead code still stand when the series is over; anything but none is false."""
    yard = Yard(folder, {"value.py": VALUE, "test_value.py": TEST}, UNITTEST)
    yard.mutate(*((f"x{n} = {n}", f"x{n} = 0") for n in range(100, 100 + ASKED)))
    evidence = yard.evidence("mutate")
    standing = standing_catches(evidence.mutations, evidence.runs)
    return len(standing) if evidence.status == "passed" else 0
