"""The real CLI, where it is installed, against a scripted model on loopback; and stand-ins that misbehave as told."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from firsthand.residues import Session, StateDirectory
from firsthand_claude.program import bundled_program
from firsthand_claude.provider import ClaudeProvider
from providers.claude.driving import Driver


@pytest.fixture(scope="session")
def cli() -> Path:
    """The CLI that `claude-agent-sdk` bundles."""
    found = bundled_program()
    if found is None:
        pytest.skip("claude-agent-sdk, which bundles the CLI, is not installed: pip install firsthand-claude[cli]")
    return found


@pytest.fixture(scope="session")
def provider() -> ClaudeProvider:
    """One for all tests: the CLI's 400 MB are digested once. No managed settings of this machine are looked at."""
    return ClaudeProvider(retries=1, managed=())


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """A session of the residue register."""
    with Session.open(StateDirectory.open(tmp_path / "state")) as opened:
        yield opened


@pytest.fixture
def driver(provider: ClaudeProvider, session: Session, tmp_path: Path, cli: Path) -> Driver:
    """Reviews by the real CLI."""
    return Driver(provider, session, tmp_path, cli)
