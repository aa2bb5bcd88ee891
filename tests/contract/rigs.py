"""Providers on a string: each plays one script through its own program, so that the same tests hold for all.

A distribution whose provider is installed can bring its rig along under the entry point group
`firsthand.provider-rigs`, by the provider's name: a callable that takes a `Script` and an empty folder, and gives a
context manager around a `Rigged`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from firsthand.review.interface import Host, Provider
from review.fake import FakeProvider

RIGS = "firsthand.provider-rigs"


@dataclass(frozen=True)
class Script:
    """What the reviewer does: these calls in a row, then this answer; None for no answer at all."""

    calls: Sequence[tuple[str, dict[str, Any]]]
    answer: dict[str, Any] | None
    refused: bool = False
    """Whether the model's service refuses the login (401) instead of all that."""
    hangs: bool = False
    """Whether the model's service accepts the request and never answers."""


@dataclass(frozen=True)
class Rigged:
    """A provider whose program plays the script, and the host as it must be told of it."""

    provider: Provider
    host: Host


Rig: TypeAlias = Callable[[Script, Path], AbstractContextManager[Rigged]]


@contextmanager
def rig_fake(script: Script, _folder: Path) -> Iterator[Rigged]:
    played: dict[str, Any] = {
        "calls": [{"tool": tool, "arguments": arguments} for tool, arguments in script.calls],
        "answer": script.answer,
        "fault": "hang" if script.hangs else "",
        "exit": 1 if script.refused else 0,
    }
    yield Rigged(FakeProvider(played), Host(environment={}, home=None))


@contextmanager
def rig_claude(script: Script, folder: Path) -> Iterator[Rigged]:
    from firsthand_claude.program import bundled_program  # noqa: PLC0415 - only where it is installed
    from firsthand_claude.provider import ClaudeProvider  # noqa: PLC0415
    from firsthand_claude.scripted import ScriptedEndpoint, parse_scenario  # noqa: PLC0415

    program = bundled_program()
    if program is None:
        pytest.skip("claude-agent-sdk, which bundles the CLI, is not installed: pip install firsthand-claude[cli]")
    turns: list[dict[str, Any]] = [
        {"calls": [{"tool": tool, "arguments": arguments}]} for tool, arguments in script.calls
    ]
    turns.append({"text": "I have nothing to say."} if script.answer is None else {"answer": script.answer})
    if script.refused:
        turns = [{"fault": {"kind": "status", "status": 401}, "times": 0}]
    elif script.hangs:
        turns = [{"fault": {"kind": "silence"}, "times": 0}]
    elif script.answer is None:
        turns[-1]["times"] = 0
    home = folder / "home"
    home.mkdir()
    with ScriptedEndpoint(parse_scenario(json.dumps({"name": "contract", "turns": turns}).encode())) as model:
        host = Host(environment={"ANTHROPIC_BASE_URL": model.url}, home=home, program=program)
        yield Rigged(ClaudeProvider(retries=1, managed=()), host)


def rig_of(name: str) -> Rig | None:
    """The rig of a provider, or None when it brought none."""
    found: Rig | None = {"fake": rig_fake, "claude": rig_claude}.get(name)
    for entry in entry_points(group=RIGS, name=name):
        found = entry.load()
    return found
