"""Scenario files: what is read, and every slip that is refused with its field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from firsthand_claude.scripted import Call, Fault, Scenario, ScenarioError, Turn, parse_scenario, read_scenario

TOML = """
name = "honest"
[[turns]]
text = "I look."
delayMs = 5
[[turns.calls]]
tool = "read_file"
arguments = { path = "src/value.py" }
[[turns]]
fault = { kind = "status", status = 529 }
times = 2
[[turns]]
answer = { verdict = "approved", summary = "fine", findings = [] }
"""

SAME = Scenario(
    "honest",
    (
        Turn(text="I look.", delay_ms=5, calls=(Call("read_file", {"path": "src/value.py"}),)),
        Turn(fault=Fault("status", 529), times=2),
        Turn(calls=(Call("StructuredOutput", {"verdict": "approved", "summary": "fine", "findings": []}),)),
    ),
)


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    import tomllib  # noqa: PLC0415

    (tmp_path / "s.toml").write_text(TOML)
    (tmp_path / "s.json").write_text(json.dumps(tomllib.loads(TOML)))
    assert read_scenario(tmp_path / "s.toml") == SAME
    assert read_scenario(tmp_path / "s.json") == SAME


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ([], ""),
        ({"name": "x"}, "turns"),
        ({"name": "x", "turns": []}, "turns"),
        ({"turns": [{}]}, "name"),
        ({"name": "x", "turns": [{}], "model": "y"}, "model"),
        ({"name": "x", "turns": [{}] * 257}, "turns"),
        ({"name": "x", "turns": [{"txt": ""}]}, "turns[0].txt"),
        ({"name": "x", "turns": [{"text": 1}]}, "turns[0].text"),
        ({"name": "x", "turns": [{"calls": {}}]}, "turns[0].calls"),
        ({"name": "x", "turns": [{"calls": [{"arguments": {}}]}]}, "turns[0].calls[0].tool"),
        ({"name": "x", "turns": [{"calls": [{"tool": "a", "args": {}}]}]}, "turns[0].calls[0].args"),
        ({"name": "x", "turns": [{"calls": [{"tool": "a"}] * 65}]}, "turns[0].calls"),
        ({"name": "x", "turns": [{"delayMs": -1}]}, "turns[0].delayMs"),
        ({"name": "x", "turns": [{"delayMs": 1.5}]}, "turns[0].delayMs"),
        ({"name": "x", "turns": [{"delayMs": 600_001}]}, "turns[0].delayMs"),
        ({"name": "x", "turns": [{"times": True}]}, "turns[0].times"),
        ({"name": "x", "turns": [{"fault": "drop"}]}, "turns[0].fault"),
        ({"name": "x", "turns": [{"fault": {"kind": "explode"}}]}, "turns[0].fault.kind"),
        ({"name": "x", "turns": [{"fault": {"kind": "status"}}]}, "turns[0].fault"),
        ({"name": "x", "turns": [{"fault": {"kind": "drop", "status": 500}}]}, "turns[0].fault"),
        ({"name": "x", "turns": [{"fault": {"kind": "status", "status": 200}}]}, "turns[0].fault.status"),
    ],
)
def test_a_slip_is_refused_with_its_field(value: Any, where: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(json.dumps(value).encode())
    assert caught.value.where == where
    assert caught.value.next_step


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"\xff", b'{"name":"x","name":"y","turns":[{}]}', b"[" * 100_000, b" " * (1024 * 1024 + 1)],
)
def test_what_is_no_json_is_refused(raw: bytes) -> None:
    with pytest.raises(ScenarioError):
        parse_scenario(raw)


def test_what_is_no_toml_and_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError):
        parse_scenario(b"= 1", toml=True)
    with pytest.raises(ScenarioError):
        read_scenario(tmp_path / "absent.json")
    with pytest.raises(ScenarioError):
        read_scenario(tmp_path)
