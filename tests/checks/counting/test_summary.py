from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.checks.counting.summary import read_cargo, read_node, read_pytest, read_unittest
from firsthand.checks.counting.tally import Counted

LINE = "-" * 70
FAILURE = f"""\
{"=" * 70}
FAIL: test_a (tu.T.test_a)
{LINE}
Traceback (most recent call last):
  File "tu.py", line 3, in test_a
    self.assertEqual(1, 2)
AssertionError: 1 != 2

{"=" * 70}
ERROR: test_b (tu.T.test_b) (i=0)
{LINE}
Traceback (most recent call last):
  File "value.py", line 1
    )x
    ^
SyntaxError: unmatched ')'

{"=" * 70}
ERROR: test_b (tu.T.test_b) (i=1)
{LINE}
Traceback (most recent call last):
ValueError: x
more

"""


def numbers(counted: Counted | None) -> tuple[int, int, int, bool] | None:
    if counted is None:
        return None
    tests = counted.tests
    return tests.executed, tests.failed, tests.skipped, tests.complete


def unittest_end(ran: str, end: str, before: str = "") -> bytes:
    return f"{before}{LINE}\n{ran}\n\n{end}\n".encode()


@pytest.mark.parametrize(
    ("ran", "end", "expected"),
    [
        ("Ran 3 tests in 0.001s", "OK", (3, 0, 0, True)),
        ("Ran 1 test in 0.001s", "OK", (1, 0, 0, True)),
        ("Ran 0 tests in 0.000s", "OK", (0, 0, 0, True)),
        ("Ran 0 tests in 0.000s", "NO TESTS RAN", (0, 0, 0, True)),
        ("Ran 3 tests in 0.001s", "OK (skipped=1, expected failures=1)", (1, 0, 2, True)),
        ("Ran 2 tests in 0.001s", "OK (skipped=2)", (0, 0, 2, True)),
        ("Ran 1 test in 0.001s", "OK (skipped=9)", (0, 0, 9, True)),
        ("Ran 4 tests in 0.001s", "FAILED (failures=1, errors=2)", (4, 3, 0, True)),
        ("Ran 4 tests in 0.001s", "FAILED (unexpected successes=1)", (4, 1, 0, True)),
    ],
)
def test_unittest_says_how_many_ran(ran: str, end: str, expected: tuple[int, int, int, bool]) -> None:
    assert numbers(read_unittest(b"", unittest_end(ran, end))) == expected


def test_unittest_names_failures_and_counts_subtests_as_one() -> None:
    counted = read_unittest(b"", unittest_end("Ran 6 tests in 0.1s", "FAILED (failures=1, errors=2)", FAILURE))
    assert numbers(counted) == (6, 2, 0, True)
    assert counted is not None
    assert {failure.name: failure.message for failure in counted.tests.failures} == {
        "test_a (tu.T.test_a)": "AssertionError: 1 != 2",
        "test_b (tu.T.test_b)": "SyntaxError: unmatched ')'",
    }
    assert counted.names is None


def test_unittest_names_every_test_when_it_lists_them_all() -> None:
    listed = (
        "test_a (tu.T.test_a) ... FAIL\n"
        "test_c (tu.T.test_c)\nWhat it does ... ok\n"
        "test_s (tu.T.test_s) ... skipped 'x'\n\n"
    )
    counted = read_unittest(
        b"", unittest_end("Ran 3 tests in 0.1s", "FAILED (failures=1, skipped=1)", listed + FAILURE)
    )
    assert numbers(counted) == (2, 1, 1, True)
    assert counted is not None
    assert counted.names is not None
    assert counted.names.names == ("test_a (tu.T.test_a)", "test_c (tu.T.test_c)")
    assert [failure.message for failure in counted.tests.failures] == ["AssertionError: 1 != 2"]


def test_unittest_may_print_to_stdout_and_with_other_line_ends() -> None:
    assert numbers(read_unittest(unittest_end("Ran 3 tests in 0.1s", "OK"), b"x")) == (3, 0, 0, True)
    windows = unittest_end("Ran 3 tests in 0.1s", "OK").replace(b"\n", b"\r\n")
    assert numbers(read_unittest(b"", windows)) == (3, 0, 0, True)


@pytest.mark.parametrize(
    "text", [b"", b"Ran 3 tests in 0.1s\n", b"Ran 3 tests in 0.1s\n\n", b"OK\n", b"xRan 3 tests in 0.1s\n\nOK\n"]
)
def test_unittest_without_a_finished_summary_said_nothing(text: bytes) -> None:
    assert read_unittest(b"", text) is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("3 passed in 0.01s", (3, 0, 0, True)),
        ("=== 1 failed, 2 passed, 1 skipped, 2 xfailed, 1 xpassed, 2 errors in 0.45s ===", (6, 3, 3, True)),
        ("no tests ran in 0.00s", (0, 0, 0, True)),
        ("2 passed, 1 warning in 61.00s (0:01:01)", (2, 0, 0, True)),
        ("1 skipped in 0.1s", (0, 0, 1, True)),
    ],
)
def test_pytest_closes_with_its_counts(line: str, expected: tuple[int, int, int, bool]) -> None:
    assert numbers(read_pytest(f"..\n{line}\n".encode())) == expected


def test_pytest_names_what_failed() -> None:
    counted = read_pytest(b"FAILED t.py::a - assert 1 == 2\nERROR t.py::b\n1 failed, 1 error in 0.1s\n")
    assert counted is not None
    assert [(failure.name, failure.message) for failure in counted.tests.failures] == [
        ("t.py::a", "assert 1 == 2"),
        ("t.py::b", ""),
    ]


def test_pytest_without_its_closing_line_said_nothing() -> None:
    assert read_pytest(b"...F") is None


COUNTS = {"tests": 4, "suites": 0, "pass": 2, "fail": 1, "cancelled": 0, "skipped": 1, "todo": 0}
NODE = "".join(f"\u2139 {word} {number}\n" for word, number in COUNTS.items())


@pytest.mark.parametrize("mark", ["\u2139", "#"])
def test_node_counts_in_both_of_its_reporters(mark: str) -> None:
    text = "\u2716 adds (1.2ms)\n" if mark == "\u2139" else "not ok 1 - adds\n"
    counted = read_node((text + NODE.replace("\u2139", mark)).encode())
    assert numbers(counted) == (3, 1, 1, True)
    assert counted is not None
    assert [failure.name for failure in counted.tests.failures] == ["adds"]


def test_node_lists_a_file_that_did_not_load_as_a_test_which_it_is_not() -> None:
    counted = read_node(("\u2716 /p/tests/v.test.mjs (3ms)\n" + NODE).encode())
    assert numbers(counted) == (3, 1, 1, False)
    assert counted is not None
    assert counted.tests.failures == ()


@pytest.mark.parametrize(
    "line", ["\u2714 /p/tests/v.test.mjs (3ms)\n", "ok 1 - /p/tests/v.test.cts\n", "    ok 1 - v.js\n"]
)
def test_node_lists_a_file_that_left_early_as_a_passed_test_which_it_is_not(line: str) -> None:
    counted = read_node((line + NODE).encode())
    assert counted is not None
    assert not counted.tests.complete


def test_node_without_all_its_counts_said_nothing() -> None:
    assert read_node(NODE.replace("\u2139 cancelled 0\n", "").encode()) is None


CARGO = """
running 3 tests
test tests::ig ... ignored, slow
test tests::adds ... FAILED
test tests::panics - should panic ... ok

failures:

---- tests::adds stdout ----

thread 'tests::adds' (7) panicked at src/lib.rs:4:9:
assertion `left == right` failed
  left: 1

failures:
    tests::adds

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""
DOCS = """
running 2 tests
test src/lib.rs - d (line 5) ... ok
test src/lib.rs - d (line 9) ... ok

test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.06s
"""


def test_cargo_names_every_test_whatever_line_its_documentation_stands_on() -> None:
    counted = read_cargo((CARGO + DOCS).encode())
    assert numbers(counted) == (4, 1, 1, True)
    assert counted is not None
    assert counted.names is not None
    assert counted.names.names == ("src/lib.rs - d", "src/lib.rs - d (2)", "tests::adds", "tests::panics")
    assert [(failure.name, failure.message) for failure in counted.tests.failures] == [
        ("tests::adds", "assertion `left == right` failed")
    ]


def test_cargo_without_a_line_for_each_test_knows_only_the_counts() -> None:
    quiet = CARGO.replace("test tests::adds ... FAILED\n", "").replace("test tests::ig ... ignored, slow\n", ".F.\n")
    counted = read_cargo(quiet.encode())
    assert numbers(counted) == (2, 1, 1, True)
    assert counted is not None
    assert counted.names is None
    assert [failure.name for failure in counted.tests.failures] == ["tests::adds"]


def test_a_test_binary_without_a_result_ended_early() -> None:
    assert numbers(read_cargo((CARGO + "\nrunning 2 tests\n").encode())) == (2, 1, 1, False)


def test_an_older_panic_line_is_the_message_itself() -> None:
    old = CARGO.replace(" (7) panicked at src/lib.rs:4:9:", " panicked at 'boom', src/lib.rs:4:9")
    counted = read_cargo(old.encode())
    assert counted is not None
    assert counted.tests.failures[0].message == "thread 'tests::adds' panicked at 'boom', src/lib.rs:4:9"


def test_cargo_that_did_not_build_said_nothing() -> None:
    assert read_cargo(b"error: could not compile `v`\n") is None


@given(st.binary(max_size=300), st.sampled_from([b"", CARGO.encode(), NODE.encode(), FAILURE.encode()]))
def test_no_output_breaks_a_reader(noise: bytes, text: bytes) -> None:
    for output in (noise + text, text + noise, text[: len(text) // 2] + noise):
        for counted in (read_unittest(output, b""), read_pytest(output), read_node(output), read_cargo(output)):
            assert counted is None or counted.tests.failed <= counted.tests.executed
