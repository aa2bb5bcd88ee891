"""Files that are not what runs, and bytecode that must not be."""

from __future__ import annotations

import py_compile
from pathlib import Path

from truth.case import BREAK, UNITTEST_FILE, VALUE, Case, loader, unittest


def stale_bytecode(project: Path) -> None:
    """Bytecode of the file as it is, marked as never to be checked against its source."""
    py_compile.compile(str(project / "value.py"), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)


ELSEWHERE: tuple[Case, ...] = (
    unittest(
        "another copy comes first on the path",
        BREAK,
        "not-exercised control-stayed-green",
        test=loader("other"),
        files={"other/value.py": VALUE},
        quick=True,
    ),
    unittest(
        "an installed copy in a path file",
        BREAK,
        "not-exercised control-stayed-green",
        test="import site\nsite.addsitedir('site')\nimport sys\nsys.path.insert(0, sys.path.pop())\n" + UNITTEST_FILE,
        files={"site/value.pth": "../other\n", "other/value.py": VALUE},
    ),
    unittest(
        "nothing imports the file",
        BREAK,
        "not-exercised control-stayed-green",
        test="import unittest\n\n\nclass T(unittest.TestCase):\n    def test_true(self):\n        pass\n",
    ),
    unittest(
        "stale bytecode beside the source", BREAK, "detected named-test-failed", prepare=stale_bytecode, quick=True
    ),
    unittest(
        "a suite that writes bytecode",
        BREAK,
        "detected named-test-failed",
        test="import sys\nsys.dont_write_bytecode = False\n" + UNITTEST_FILE,
    ),
)
