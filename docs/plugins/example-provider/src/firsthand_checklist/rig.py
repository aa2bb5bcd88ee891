"""The rig by which Firsthand's own contract tests play scripts through this provider; see tests/contract/rigs.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from firsthand.review.interface import Host, Provider
from firsthand_checklist.provider import ChecklistProvider, Plan


class Script(Protocol):
    """What the tests want the reviewer to do."""

    @property
    def calls(self) -> Sequence[tuple[str, dict[str, Any]]]:
        """Tool and arguments, in a row."""

    @property
    def answer(self) -> dict[str, Any] | None:
        """Then this answer; None for none."""

    @property
    def refused(self) -> bool:
        """Whether the login is refused instead."""

    @property
    def hangs(self) -> bool:
        """Whether nothing is answered at all."""


@dataclass(frozen=True)
class Rigged:
    """The provider, and the host as it must be told of it."""

    provider: Provider
    host: Host


@contextmanager
def rig(script: Script, _folder: Path) -> Iterator[Rigged]:
    """A provider that plays this script."""
    plan = Plan(tuple(script.calls), script.answer, refused=script.refused, hangs=script.hangs)
    yield Rigged(ChecklistProvider(plan), Host(environment={}, home=None))
