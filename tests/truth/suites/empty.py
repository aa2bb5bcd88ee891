"""Suites that run nothing, or less than they hold."""

from __future__ import annotations

from checks.yard import PYTEST, UNITTEST
from truth.case import VALUE, Case, cargo, check, node, pytest

EMPTY: tuple[Case, ...] = (
    check(
        "no tests",
        UNITTEST,
        {"test_value.py": "import unittest\n"},
        "inconclusive no-tests",
        "failed exit-nonzero",
        quick=True,
    ),
    check("no tests under pytest", PYTEST, {"test_value.py": ""}, "failed exit-nonzero"),
    check(
        "nothing selected", (*PYTEST, "-k", "nothing"), {"test_value.py": "def test_a(): pass\n"}, "failed exit-nonzero"
    ),
    check("an import error", PYTEST, {"test_value.py": "import nowhere\n"}, "failed exit-nonzero"),
    check(
        "a bad option", (*PYTEST, "--no-such-option"), {"test_value.py": "def test_a(): pass\n"}, "failed exit-nonzero"
    ),
    check(
        "an internal error",
        PYTEST,
        {
            "conftest.py": "def pytest_runtestloop(session):\n    raise ValueError\n",
            "test_value.py": "def test_a(): pass\n",
        },
        "failed exit-nonzero",
    ),
    check(
        "all skipped",
        PYTEST,
        {"test_value.py": "import pytest\n\n\n@pytest.mark.skip\ndef test_a(): pass\n"},
        "inconclusive all-skipped",
        quick=True,
    ),
    check(
        "all skipped by unittest",
        UNITTEST,
        {
            "test_value.py": "import unittest\n\n\n@unittest.skip('')\nclass T(unittest.TestCase):\n"
            "    def test_a(self): pass\n"
        },
        "inconclusive all-skipped",
        "failed exit-nonzero",
    ),
    check(
        "only collected",
        (*PYTEST, "--collect-only"),
        {"test_value.py": "def test_a(): pass\n"},
        "inconclusive no-tests",
    ),
    check(
        "leaves with 0 while it is imported",
        UNITTEST,
        {"test_value.py": "import os\nos._exit(0)\n"},
        "inconclusive ended-early",
        quick=True,
    ),
    check(
        "leaves with 0 before a failing test",
        PYTEST,
        {"test_value.py": "import os\n\n\ndef test_a():\n    os._exit(0)\n\n\ndef test_b():\n    assert 0\n"},
        "inconclusive ended-early",
    ),
    check(
        "ends the session with 0 before a failing test",
        PYTEST,
        {
            "test_value.py": "import pytest\n\n\ndef test_0(): pass\n\n\ndef test_a():\n"
            "    pytest.exit('', returncode=0)\n\n\ndef test_b():\n    assert 0\n"
        },
        "inconclusive ended-early",
        quick=True,
    ),
    node("a script without tests", "process.exitCode = 0;\n", None, "inconclusive ended-early"),
    node(
        "leaves with 0 at once",
        'import test from "node:test";\ntest("a", () => process.exit(0));\ntest("b", () => { throw 1; });\n',
        None,
        "inconclusive ended-early",
    ),
    node(
        "leaves with 0 after some tests",
        'import test from "node:test";\nconst wait = () => new Promise((done) => setTimeout(done, 200));\n'
        'test("a", () => {});\ntest("b", wait);\ntest("c", () => {});\n'
        'test("d", async () => { await wait(); process.exit(0); });\ntest("e", () => { throw 1; });\n',
        None,
        "inconclusive ended-early",
        quick=True,
    ),
    node(
        "leaves with 0 at once, with a reporter of its own",
        'import test from "node:test";\ntest("a", () => process.exit(0));\ntest("b", () => { throw 1; });\n',
        None,
        "inconclusive ended-early",
        flags=("--test-reporter=tap",),
    ),
    node(
        "all skipped by node",
        'import test from "node:test";\ntest("a", { skip: true }, () => {});\n',
        None,
        "inconclusive all-skipped",
    ),
    cargo("no Rust tests", "pub fn add() {}\n", None, "inconclusive no-tests"),
    cargo(
        "leaves with 0 inside cargo",
        "#[test]\nfn a() { std::process::exit(0) }\n#[test]\nfn b() { panic!() }\n",
        None,
        "inconclusive ended-early",
    ),
    *(
        pytest(
            f"selects nothing any more ({how})",
            ("CASES = [1]", "CASES = []"),
            expected,
            value=VALUE + "\n\nCASES = [1]\n",
            test=test,
            files=files,
        )
        for how, expected, test, files in (
            (
                "deselected",
                "inconclusive unordinary-exit-code",
                "def test_a(): pass\n",
                {
                    "conftest.py": "import value\n\n\ndef pytest_collection_modifyitems(items):\n"
                    "    items[:] = items if value.CASES else []\n"
                },
            ),
            (
                "no parameters",
                "inconclusive no-tests",
                "import pytest, value\n\n\n@pytest.mark.parametrize('x', value.CASES)\ndef test_a(x): pass\n",
                {},
            ),
        )
    ),
)
