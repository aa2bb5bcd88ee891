from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.cli.text import json_line, one_line, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("naïve 値 🙂", "naïve 値 🙂"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("over\rwritten", "over\\x0dwritten"),
        ("gone\x08\x7f", "gone\\x08\\x7f"),
        ("\x9b31m", "\\x9b31m"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("\u2066isolate\u2069", "\\u2066isolate\\u2069"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("line\u2028separator\u2029", "line\\u2028separator\\u2029"),
        ("next\x85line", "next\\x85line"),
        ("lone \ud800", "lone \\ud800"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("\x00", "\\x00"),
    ],
)
def test_what_can_not_be_seen_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::no", "| ::error::no"),
        ("fine\n::set-output name=a::b", "fine\n| ::set-output name=a::b"),
        ("  \t::add-mask::x", "  \t| ::add-mask::x"),
        ("\u3000::stop-commands::x", "\u3000| ::stop-commands::x"),
        ("##[add-path]/evil", "## [add-path]/evil"),
        ("anywhere ##[error]no", "anywhere ## [error]no"),
        ("###[error]no", "### [error]no"),
        ("##vso[task.setvariable variable=a]b", "## vso[task.setvariable variable=a]b"),
        ("##teamcity[buildStatus text='x']", "## teamcity[buildStatus text='x']"),
        ("tests/test_a.py::test_b", "tests/test_a.py::test_b"),
        ("## a heading", "## a heading"),
    ],
)
def test_no_line_is_a_command_of_a_ci_runner(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_whatever_comes_in_all_that_comes_out_is_plain_to_see(text: str) -> None:
    for line in visible(text).split("\n"):
        assert all(unicodedata.category(one) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for one in line.replace("\t", ""))
        assert not line.lstrip().startswith("::")
        assert "##[" not in line


@given(st.text(max_size=400), st.integers(min_value=1, max_value=300))
def test_one_line_is_one_line_within_its_limit(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert "\n" not in line
    assert len(line) <= limit


@given(st.text())
def test_shown_twice_is_shown_the_same(text: str) -> None:
    assert visible(visible(text)) == visible(text)


@given(st.dictionaries(st.text(), st.text()))
def test_json_is_one_line_of_ascii_that_says_the_same(value: dict[str, str]) -> None:
    line = json_line(dict(value))
    assert line.isascii()
    assert line.count("\n") == 1
    assert "##" not in line
    assert json.loads(line) == value
