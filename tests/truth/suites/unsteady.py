"""Suites that drift, outlive their run, or come close to their limit."""

from __future__ import annotations

from checks.yard import UNITTEST
from truth.case import BREAK, UNITTEST_FILE, Case, check, pytest, unittest

UNREACHED = ("return 1  # never called", "return 2  # never called")


UNSTEADY: tuple[Case, ...] = (
    check(
        "a thread that outlives its test",
        UNITTEST,
        {
            "test_value.py": "import threading, time, unittest\n\n\nclass T(unittest.TestCase):\n"
            "    def test_a(self):\n        threading.Thread(target=time.sleep, args=(60,)).start()\n"
        },
        "failed timed-out",
        timeout_ms=3_000,
    ),
    check(
        "a process that outlives its test",
        UNITTEST,
        {
            "test_value.py": "import subprocess, unittest\n\n\nclass T(unittest.TestCase):\n    def test_a(self):\n"
            "        subprocess.Popen(['/usr/bin/sleep', '60'], start_new_session=True).returncode = 0\n"
        },
        "passed exit-zero",
    ),
    pytest(
        "counts that drift",
        BREAK,
        "inconclusive counts-drifted",
        test="import os, pytest, value\n\n\n@pytest.mark.parametrize('x', [os.urandom(4).hex()])\n"
        "def test_a(x): pass\n\n\ndef test_b():\n    assert value.add(1, 2) == 3\n",
    ),
    unittest(
        "a suite that rewrites the implementation",
        UNREACHED,
        "inconclusive copy-drift",
        test=UNITTEST_FILE + "\n    def test_zz(self):\n        open('value.py', 'a').write('#')\n",
        quick=True,
    ),
    unittest(
        "a suite that rewrites the implementation when it is broken",
        BREAK,
        "inconclusive copy-drift",
        test=UNITTEST_FILE
        + "\n    def test_zz(self):\n        if add(1, 2) != 3:\n            open('value.py', 'w').close()\n",
    ),
    unittest(
        "nearly the limit, beside a hog",
        ("# never called", "# never called at all"),
        "timeout deadline",
        "survived check-stayed-green",
        "inconclusive not-green-before",
        "inconclusive not-green-after",
        "inconclusive no-control",
        test=UNITTEST_FILE + "\n    def test_zz(self):\n        import os, time\n        if os.fork() == 0:\n"
        "            while True: pass\n        time.sleep(2.7)\n",
        timeout_ms=3_000,
    ),
    unittest(
        "a baseline beyond the limit",
        BREAK,
        "inconclusive not-green-before",
        test=UNITTEST_FILE + "\n    def test_zz(self):\n        import time\n        time.sleep(9)\n",
        timeout_ms=1_500,
    ),
    unittest(
        "a baseline that is red",
        BREAK,
        "inconclusive not-green-before",
        test=UNITTEST_FILE.replace("3)", "4)"),
        quick=True,
    ),
    unittest(
        "a baseline without tests",
        BREAK,
        "inconclusive not-green-before",
        test="import value\n",
    ),
)
