"""What the documents show works as shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from firsthand.review.interface import FailureKind
from firsthand_claude.flags import Asked, command_line
from firsthand_claude.scripted import parse_scenario
from firsthand_claude.scripted.scenario import FaultKind

DOCS = Path(__file__).parents[3] / "docs"
SCRIPTED = (DOCS / "scripted-model.md").read_text()
PROVIDERS = (DOCS / "providers.md").read_text()


def test_the_shown_scenario_is_one() -> None:
    (shown,) = re.findall(r"^```toml\n(.*?)^```$", SCRIPTED, re.MULTILINE | re.DOTALL)
    scenario = parse_scenario(shown.encode(), toml=True)
    assert [turn.times for turn in scenario.turns] == [1, 1, 2, 1, 1]


def test_the_shown_program_is_one(tmp_path: Path) -> None:
    (shown,) = re.findall(r"^```python\n(.*?)^```$", SCRIPTED, re.MULTILINE | re.DOTALL)
    (tmp_path / "scenario.toml").write_text('name = "x"\nturns = [{ text = "hi" }]\n')
    said: list[str] = []
    program = shown.replace('"scenario.toml"', repr(str(tmp_path / "scenario.toml")))
    names = {"print": lambda *words: said.append(" ".join(map(str, words))), "input": lambda _: ""}
    exec(program, names)  # noqa: S102 - the documentation's own code
    assert said[0].startswith("http://127.0.0.1:")


def test_every_fault_and_failure_is_described() -> None:
    for kind in get_args(FaultKind):
        assert f'"kind": "{kind}"' in SCRIPTED
    for kind in get_args(FailureKind):
        assert f"`{kind}`" in PROVIDERS, kind


def test_every_flag_is_described() -> None:
    line = command_line("claude", "FILE", Asked("M", "E", "S", "SCHEMA", ("read_file",), 1))
    for word in line:
        if word.startswith("--"):
            assert word in PROVIDERS, word
