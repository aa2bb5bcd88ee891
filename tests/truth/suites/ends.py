"""Mutants that end a run in every way but an ordinary failure."""

from __future__ import annotations

from checks.yard import PYTHON
from truth.case import BREAK, PYTEST_FILE, UNITTEST_FILE, Case, pytest, script, unittest


def kill_with(signal: int) -> tuple[str, str]:
    return ("return a + b", f"import os; os.kill(os.getpid(), {signal})")


def leave_with(code: int) -> tuple[str, str]:
    return ("return a + b", f"import os; os._exit({code})")


ENDS: tuple[Case, ...] = (
    unittest("a loop", ("return a + b", "while True: pass"), "timeout deadline", timeout_ms=4_000),
    unittest("a segmentation fault", kill_with(11), "crash signal", quick=True),
    unittest("a kill as by memory pressure", kill_with(9), "crash signal"),
    unittest("an abort", kill_with(6), "crash signal"),
    script(
        "a segmentation fault behind a shell",
        f"{PYTHON} -m unittest\nexit $?\n",
        kill_with(11),
        "crash signal-exit-code",
        runner="unittest",
        files={"test_value.py": UNITTEST_FILE},
        quick=True,
    ),
    script(
        "a kill behind a shell",
        f"{PYTHON} -m unittest\nexit $?\n",
        kill_with(9),
        "crash signal-exit-code",
        runner="unittest",
        files={"test_value.py": UNITTEST_FILE},
    ),
    *(unittest(f"leaving with {code}", leave_with(code), "inconclusive unordinary-exit-code") for code in (2, 3, 4, 5)),
    unittest("leaving with 0 before a failure", leave_with(0), "inconclusive ended-early", quick=True),
    unittest("leaving with 1 and no summary", leave_with(1), "inconclusive ended-early"),
    unittest("leaving with 137", leave_with(137), "crash signal-exit-code"),
    pytest("leaving pytest with 0 before a failure", leave_with(0), "inconclusive ended-early"),
    pytest("leaving pytest with 1 and no report", leave_with(1), "inconclusive ended-early"),
    pytest(
        "one failure, then a crash with 1",
        BREAK,
        "inconclusive ended-early",
        test=PYTEST_FILE + "\n\ndef test_zz():\n    import os\n    if add(1, 1) != 2:\n        os._exit(1)\n",
    ),
    unittest(
        "a failure printed, then a crash with 1",
        ("return a + b", "print('FAIL: test_sum (test_value.Add.test_sum)'); import os; os._exit(1)"),
        "inconclusive ended-early",
    ),
    unittest("a flood", ("return a + b", "print('x' * 3_000_000); return a + b"), "crash output-limit", quick=True),
    script("not to be executed", "test -f broken || exit 0\n", None, "passed exit-zero", runner="exit"),
    script(
        "a program that is missing",
        f"{PYTHON} -c 'import sys, value; sys.exit(0 if value.add(1, 2) == 3 else 127)'\n",
        BREAK,
        "inconclusive unordinary-exit-code",
        runner="exit",
    ),
    unittest(
        "memory runs out",
        ("return a + b", "return len([0] * 10**10) * 0 + a - b"),
        "crash resource-exhausted",
        quick=True,
    ),
    unittest(
        "the disk runs out",
        ("return a + b", "open('/tmp/x', 'wb').write(b'x' * (600 << 20)); return a + b"),
        "crash resource-exhausted",
    ),
    unittest(
        "descriptors run out",
        ("return a + b", "x = [open('/dev/null') for _ in range(10**7)]; return a + b"),
        "crash resource-exhausted",
    ),
    unittest(
        "processes run out",
        ("return a + b", "import os, time\n    while True:\n        if os.fork() == 0: time.sleep(100)"),
        "crash resource-exhausted",
        "timeout deadline",
        timeout_ms=15_000,
    ),
)
