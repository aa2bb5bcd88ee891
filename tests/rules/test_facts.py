from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.rules import FactsError, definition_facts
from rules.forge import ARGV, definition


def test_what_the_rules_rest_on_is_read() -> None:
    facts = definition_facts(
        definition(
            checks=[
                {"id": "a", "command": list(ARGV["pytest"])},
                {"id": "b", "command": ["make", "test"], "runner": "go-test"},
                {"id": "c", "command": ["make"], "runner": "exit"},
                {"id": "d", "command": ["make"]},
            ],
            timeoutMs=7,
        )
    )
    assert [(check.id, check.runner, check.trusts_exit_code) for check in facts.checks] == [
        ("a", "pytest", False),
        ("b", "go-test", False),
        ("c", "exit", True),
        ("d", "exit", False),
    ]
    assert facts.mutation_paths == ("src/value.py",)
    assert (facts.timeout_ms, facts.tool_less) == (7, False)
    assert facts.check("nowhere") is None


def test_a_definition_as_written_may_leave_defaults_out() -> None:
    text = json.dumps({"reviewVerification": {"checks": [{"id": "a", "command": ["make"]}]}})
    facts = definition_facts(text)
    assert (facts.timeout_ms, facts.mutation_paths) == (60_000, ())


def test_without_verification_there_is_nothing_to_run() -> None:
    assert definition_facts('{"runId": "r"}').tool_less


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '"x"',
        '{"a": 1.5}',
        '{"reviewVerification": 3}',
        '{"reviewVerification": {}}',
        '{"reviewVerification": {"checks": {}}}',
        '{"reviewVerification": {"checks": [3]}}',
        '{"reviewVerification": {"checks": [{"command": ["x"]}]}}',
        '{"reviewVerification": {"checks": [{"id": "a"}]}}',
        '{"reviewVerification": {"checks": [{"id": "a", "command": "x"}]}}',
        '{"reviewVerification": {"checks": [{"id": "a", "command": [3]}]}}',
        '{"reviewVerification": {"checks": [{"id": "a", "command": ["x"], "runner": "jest"}]}}',
        '{"reviewVerification": {"checks": [], "timeoutMs": "3"}}',
        '{"reviewVerification": {"checks": [], "timeoutMs": true}}',
        '{"reviewVerification": {"checks": [], "mutationPaths": "x"}}',
        '{"runId": "\\ud800"}',
    ],
)
def test_a_text_that_lacks_them_is_refused(text: str) -> None:
    with pytest.raises(FactsError):
        definition_facts(text)


@given(st.text(max_size=40) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_no_text_does_anything_but_give_facts_or_be_refused(text: str) -> None:
    try:
        definition_facts(text)
    except FactsError:
        return
