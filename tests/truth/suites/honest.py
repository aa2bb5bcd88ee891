"""Suites that notice, and suites that have nothing to notice."""

from __future__ import annotations

from checks.yard import PYTEST, PYTHON
from truth.case import BREAK, Case, cargo, node, pytest, script, unittest

UNREACHED = ("return 1  # never called", "return 2  # never called")


NODE_TEST = (
    'import test from "node:test";\nimport assert from "node:assert";\nimport { add } from "../value.mjs";\n'
    'test("adds", () => assert.equal(add(1, 2), 3));\n'
)

HONEST: tuple[Case, ...] = (
    unittest("a broken sum is caught", BREAK, "detected named-test-failed", quick=True),
    pytest("a broken sum is caught by pytest", BREAK, "detected named-test-failed"),
    unittest("dead code survives", UNREACHED, "survived check-stayed-green", quick=True),
    pytest("dead code survives pytest", UNREACHED, "survived check-stayed-green"),
    script(
        "a plain exit code is only labelled",
        f"exec {PYTHON} -c 'import value; assert value.add(1, 2) == 3'\n",
        BREAK,
        "detected exit-code-only",
        runner="exit",
        quick=True,
    ),
    node(
        "a broken sum is caught by node",
        'import test from "node:test";\nimport assert from "node:assert";\nimport { add } from "../value.mjs";\n'
        'test("adds", () => assert.equal(add(1, 2), 3));\n',
        BREAK,
        "detected named-test-failed",
        quick=True,
    ),
    cargo(
        "a broken sum is caught by cargo",
        "pub fn add(a: i32, b: i32) -> i32 { a + b }\n#[test]\nfn adds() { assert_eq!(add(1, 2), 3); }\n",
        ("a + b", "a - b"),
        "detected named-test-failed",
    ),
    pytest(
        "a broken sum is caught by a pytest that writes a report of its own",
        BREAK,
        "detected named-test-failed",
        command=(*PYTEST, "--junitxml=own.xml"),
    ),
    *(
        node(
            f"a broken sum is caught by node with {flags}", NODE_TEST, BREAK, "detected named-test-failed", flags=flags
        )
        for flags in (
            ("--test-reporter=tap",),
            ("--test-reporter=spec",),
            ("--test-reporter=junit", "--test-reporter-destination=own.xml"),
        )
    ),
)
