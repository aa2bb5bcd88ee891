"""A strong test: it says what the result must be."""

import unittest

from cart import total


class TestTotal(unittest.TestCase):
    def test_adds_up(self) -> None:
        self.assertEqual(total([250, 100, 75]), 425)

    def test_of_nothing_is_nothing(self) -> None:
        self.assertEqual(total([]), 0)
