from __future__ import annotations

import pytest

from firsthand.records import RunnerName
from firsthand.rules import detect_runner, is_ordinary_failure, runner_of


@pytest.mark.parametrize(
    ("command", "runner"),
    [
        ("pytest", "pytest"),
        ("py.test -x", "pytest"),
        ("/opt/venv/bin/pytest tests -q", "pytest"),
        ("python -m pytest tests", "pytest"),
        ("python3.12 -B -W error -X dev -m pytest", "pytest"),
        ("python -Werror -mpytest", "pytest"),
        ("python -Bm pytest", "pytest"),
        ("python --check-hash-based-pycs never -m pytest", "pytest"),
        (".venv/bin/python .venv/bin/pytest", "pytest"),
        ("python -m unittest discover -s tests", "unittest"),
        ("pypy3 -m unittest", "unittest"),
        ("node --test", "node-test"),
        ("node --test tests/value.test.mjs", "node-test"),
        ("node --import ./setup.mjs --test x.mjs", "node-test"),
        ("/usr/bin/nodejs --no-warnings --test", "node-test"),
        ("go test ./...", "go-test"),
        ("go -C sub test", "go-test"),
        ("cargo test", "cargo-test"),
        ("cargo +nightly --offline t", "cargo-test"),
        ("cargo --config x=1 test --lib", "cargo-test"),
        ("python -c import_pytest", None),
        ("python test_value.py", None),
        ("python -m coverage run -m pytest", None),
        ("python pytest", None),
        ("python -m", None),
        ("python", None),
        ("node tests/value.test.mjs --test", None),
        ("node --require --test x.js", None),
        ("node", None),
        ("go vet test", None),
        ("go build", None),
        ("cargo build test", None),
        ("cargo", None),
        ("make test", None),
        ("npm test", None),
        ("sh -c pytest", None),
    ],
)
def test_argv_shows_its_runner_or_none(command: str, runner: RunnerName | None) -> None:
    assert detect_runner(command.split()) == runner


def test_no_argv_has_no_runner() -> None:
    assert detect_runner([]) is None


def test_the_definition_has_the_first_word_and_the_exit_code_the_last() -> None:
    assert runner_of(["pytest"], "exit") == "exit"
    assert runner_of(["make", "test"], "pytest") == "pytest"
    assert runner_of(["node", "--test"], None) == "node-test"
    assert runner_of(["make", "test"], None) == "exit"


@pytest.mark.parametrize(
    ("runner", "ordinary"),
    [("pytest", {1}), ("unittest", {1}), ("node-test", {1}), ("go-test", {1}), ("cargo-test", {101})],
)
def test_each_runner_has_exactly_one_ordinary_failing_exit(runner: RunnerName, ordinary: set[int]) -> None:
    assert {code for code in range(256) if is_ordinary_failure(runner, code)} == ordinary


def test_a_plain_exit_code_fails_ordinarily_up_to_125() -> None:
    assert {code for code in range(256) if is_ordinary_failure("exit", code)} == set(range(1, 126))
