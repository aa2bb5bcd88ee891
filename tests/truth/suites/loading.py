"""Mutants that do not load."""

from __future__ import annotations

from checks.yard import PYTHON
from truth.case import PYTEST_FILE, UNITTEST_FILE, Case, cargo, node, pytest, script, unittest

LOADING: tuple[Case, ...] = (
    unittest(
        "no Python any more",
        ("return a + b", "return a +"),
        "inconclusive failed-test-not-in-baseline",
        quick=True,
        test=UNITTEST_FILE.replace("    def test_zero(self):\n        self.assertEqual(add(0, 0), 0)\n", ""),
    ),
    unittest("no Python any more, other counts", ("return a + b", "return a +"), "inconclusive counts-drifted"),
    pytest("no Python any more under pytest", ("return a + b", "return a +"), "inconclusive unordinary-exit-code"),
    pytest(
        "raises while it is imported", ("def unused", "nowhere\n\n\ndef unused"), "inconclusive unordinary-exit-code"
    ),
    pytest(
        "no Python any more, loaded by each test",
        ("return a + b", "return a +"),
        "inconclusive same-failure-as-control",
        test=PYTEST_FILE.replace("from value import add\n", "").replace("():\n", "():\n    from value import add\n"),
        quick=True,
    ),
    unittest(
        "an undefined name on import, loaded by each test",
        ("def unused", "nowhere\n\n\ndef unused"),
        "inconclusive same-failure-as-control",
        test=UNITTEST_FILE.replace("from value import add\n", "").replace(
            "(self):\n", "(self):\n        from value import add\n"
        ),
    ),
    script(
        "no Python any more, by exit code",
        f"exec {PYTHON} -c 'import value; assert value.add(1, 2) == 3'\n",
        ("return a + b", "return a +"),
        "inconclusive same-failure-as-control",
        runner="exit",
    ),
    node(
        "no script any more",
        'import test from "node:test";\nimport assert from "node:assert";\nimport { add } from "../value.mjs";\n'
        'test("adds", () => assert.equal(add(1, 2), 3));\n',
        ("return a + b", "return a +"),
        "inconclusive ended-early",
    ),
    node(
        "no script any more, loaded by each test",
        'import test from "node:test";\nimport assert from "node:assert";\n'
        'test("adds", async () => assert.equal((await import("../value.mjs")).add(1, 2), 3));\n',
        ("return a + b", "return a +"),
        "inconclusive same-failure-as-control",
        quick=True,
    ),
    cargo(
        "no Rust any more",
        "pub fn add(a: i32, b: i32) -> i32 { a + b }\n#[test]\nfn adds() { assert_eq!(add(1, 2), 3); }\n",
        ("a + b", "a +"),
        "inconclusive no-named-test",
    ),
)
