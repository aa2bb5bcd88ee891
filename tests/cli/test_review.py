"""`firsthand preflight` and `firsthand review` without a reviewer: what is refused, how it is said, how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from e2e.program import Program
from e2e.project import Project


@pytest.fixture
def reviewable(honest: Project) -> Project:
    definition = json.loads(honest.config.read_text())
    honest.config.write_text(json.dumps({**definition, "reviewRuntime": "claude", "stages": ["final"]}))
    return honest


@pytest.mark.parametrize("as_json", [False, True])
def test_a_missing_diagnosis_is_refused_with_the_command_that_makes_one(
    program: Program, reviewable: Project, as_json: bool
) -> None:
    asked = ("review", "--stage", "final", "--review", "review.json", *(["--json"] if as_json else []))
    answer = program(*asked, cwd=reviewable.root)
    assert answer.status == 3
    if as_json:
        assert answer.err == ""
        assert (answer.json["status"], answer.json["code"]) == ("refused", "tool_preflight_missing")
        assert answer.json["next"].startswith("firsthand preflight")
    else:
        assert answer.out == ""
        assert "code:  tool_preflight_missing" in answer.err
        assert "next:  firsthand preflight" in answer.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("review", "--review", "review.json"),
        ("review", "--stage", "final"),
        ("preflight",),
        ("preflight", "--model", "m", "--timeout-ms", "0"),
        ("preflight", "--model", "m", "--max-turns", "0"),
    ],
    ids=" ".join,
)
def test_what_is_needed_is_asked_for(program: Program, reviewable: Project, arguments: tuple[str, ...]) -> None:
    answer = program(*arguments, cwd=reviewable.root)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err


def test_a_definition_without_a_reviewer_names_the_field(program: Program, honest: Project) -> None:
    answer = program("preflight", "--model", "m", cwd=honest.root)
    assert (answer.status, answer.out) == (3, "")
    assert "review_verification_provider" in answer.err
    assert "reviewRuntime" in answer.err


def test_a_program_that_is_none_is_refused(program: Program, reviewable: Project, tmp_path: Path) -> None:
    answer = program("preflight", "--model", "m", "--program", tmp_path / "none", cwd=reviewable.root)
    assert (answer.status, answer.out) == (3, "")
    assert "review_verification_provider" in answer.err


def test_no_round_was_begun_by_any_of_it(program: Program, reviewable: Project) -> None:
    program("review", "--stage", "final", "--review", "review.json", "--json", cwd=reviewable.root)
    assert program("runs", "list", "--json", cwd=reviewable.root).json == {"runs": []}
