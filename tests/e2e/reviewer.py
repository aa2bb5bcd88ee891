"""A project under review, a user without a login, and what the scripted model is told to do to the real CLI."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from e2e.fixtures import warm_state
from e2e.program import Answer, Program
from e2e.project import PYTHON, Project
from firsthand.ledger import Ledger, Round
from firsthand.residues import StateDirectory
from firsthand_claude.program import bundled_program
from firsthand_claude.scripted import Call, Scenario, ScriptedEndpoint, Turn

MODEL: Final = "scripted-claude"
ACCESS_TOKEN: Final = "access-CANARY-7b1f"
REFRESH_TOKEN: Final = "refresh-CANARY-91c2"
_YEAR_2100_MS: Final = 4_102_444_800_000

CART: Final = "def total(prices):\n    return sum(prices)\n"
TEST_CART: Final = """\
import unittest

import cart


class Total(unittest.TestCase):
    def test_adds_up(self):
        self.assertEqual(cart.total([1, 2]), 3)
"""

READ: Final = Turn(calls=(Call("read_file", {"path": "cart.py"}),))
CHECK: Final = Turn(calls=(Call("run_check", {"checkId": "total"}),))
MUTATE: Final = Turn(
    calls=(
        Call("mutate_check", {"checkId": "total", "path": "cart.py", "old": "return sum(prices)", "new": "return 0"}),
    )
)


def says(verdict: str, summary: str = "Looked at.") -> Turn:
    """A last turn with this answer."""
    return Turn(calls=(Call("StructuredOutput", {"verdict": verdict, "summary": summary, "findings": []}),))


HONEST: Final = (READ, CHECK, MUTATE, says("approved"))
REJECTING: Final = (READ, CHECK, says("rejected", "The total of nothing is not defined."))
LYING: Final = (says("approved", "All tests pass; every mutation was caught. verification: passed"),)


@contextmanager
def played(turns: Sequence[Turn]) -> Iterator[ScriptedEndpoint]:
    """The model that plays these turns, on loopback while this is open."""
    with ScriptedEndpoint(Scenario("test", tuple(turns))) as model:
        yield model


def dispatches(model: ScriptedEndpoint) -> int:
    """How often the model was asked from the beginning: a request without any tool result."""
    return sum(not exchange.results() for exchange in model.messages())


@dataclass(frozen=True)
class Reviewed:
    """A project with a definition, the program as its user runs it, and a diagnosis of this machine.

    Attributes:
        program: with a home, a temporary folder and a state directory of its own, and no key in its environment.
        project: the project.
        folder: where all of these lie.
    """

    program: Program
    project: Project
    folder: Path

    @property
    def diagnosis(self) -> Path:
        """What the preflight wrote."""
        return self.folder / "review.json"

    @property
    def run_id(self) -> str:
        """As the definition says."""
        return str(json.loads(self.project.config.read_text())["runId"])

    def define(self, run_id: str, **changes: Any) -> None:
        """Write the definition; None takes a field away."""
        fields = {
            "runId": run_id,
            "runtime": "test",
            "reviewRuntime": "claude",
            "package": {"requirements": ["REQUIREMENTS.md"]},
            "reviewVerification": {
                "files": ["REQUIREMENTS.md", "cart.py", "tests/__init__.py", "tests/test_cart.py"],
                "checks": [{"id": "total", "command": [PYTHON, "-m", "unittest", "-v", "tests.test_cart"]}],
                "mutationPaths": ["cart.py"],
            },
            **changes,
        }
        self.project.config.write_text(json.dumps({name: value for name, value in fields.items() if value is not None}))

    def __call__(self, *arguments: str | Path, model: ScriptedEndpoint | None = None) -> Answer:
        """Run the program in the project, with a model at hand or without."""
        shown = {} if model is None else {"ANTHROPIC_BASE_URL": model.url}
        return self.program(*arguments, cwd=self.project.root, timeout_s=120, **shown)

    def start(self, stage: str, model: ScriptedEndpoint, review: Path | None = None) -> subprocess.Popen[bytes]:
        """Begin one `firsthand review --json`; the caller ends it."""
        return self.program.start(*self.command(stage, review), cwd=self.project.root, ANTHROPIC_BASE_URL=model.url)

    def review(self, stage: str, turns: Sequence[Turn], *arguments: str | Path, review: Path | None = None) -> Answer:
        """One `firsthand review --json` against a model that plays these turns."""
        with played(turns) as model:
            answer = self(*self.command(stage, review), *arguments, model=model)
            assert model.problems == []
            return answer

    def command(self, stage: str, review: Path | None = None) -> tuple[str | Path, ...]:
        """The arguments of one review."""
        return "review", "--review", review or self.diagnosis, "--stage", stage, "--json"

    def budgeted(self, timeout_ms: int) -> Path:
        """The same diagnosis with another budget."""
        changed = self.folder / f"review-{timeout_ms}.json"
        found = json.loads(self.diagnosis.read_text())
        found["budget"]["timeoutMs"] = timeout_ms
        changed.write_text(json.dumps(found))
        return changed

    def rounds(self, run_id: str | None = None) -> tuple[Round, ...]:
        """What the ledger knows; it is opened anew and checks itself."""
        with Ledger.open(StateDirectory.open(self.program.state)) as ledger:
            return ledger.rounds(run_id or self.run_id)

    def states(self) -> list[tuple[str, int, str, str]]:
        """Stage, number, state and code of each round."""
        return [(one.facts.stage, one.facts.round, one.facts.state, one.facts.code) for one in self.rounds()]

    def log_in(self) -> None:
        """Give the user a login of the CLI that lasts."""
        place = self.folder / "home" / ".claude"
        place.mkdir(parents=True)
        fields = {
            "accessToken": ACCESS_TOKEN,
            "refreshToken": REFRESH_TOKEN,
            "expiresAt": _YEAR_2100_MS,
            "scopes": ["user:inference"],
            "subscriptionType": "max",
        }
        (place / ".credentials.json").write_text(json.dumps({"claudeAiOauth": fields}))

    def holding(self, text: str) -> list[Path]:
        """Files below the state and temporary folders that hold this text."""
        places = (self.program.state, self.folder / "tmp")
        files = [path for place in places for path in place.rglob("*") if path.is_file() and not path.is_symlink()]
        return [path for path in files if text.encode() in path.read_bytes()]


def prepare(folder: Path, factory: pytest.TempPathFactory) -> Reviewed:
    """A project whose review can begin. The battery and the preflight are those of the whole test run.

    Skips where the real CLI is not installed.
    """
    if bundled_program() is None:
        pytest.skip("claude-agent-sdk, which bundles the CLI, is not installed: pip install firsthand-claude[cli]")
    for name in ("home", "tmp", "project"):
        (folder / name).mkdir()
    state = folder / "state"
    shutil.copytree(warm_state(factory), state)
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        # As an installed program has it: compiled once.
        "PYTHONPYCACHEPREFIX": str(factory.getbasetemp() / "firsthand-bytecode"),
    }
    project = Project(folder / "project")
    project.write("REQUIREMENTS.md", "`total` adds prices up.\n")
    project.write("cart.py", CART)
    project.write("tests/__init__.py", "")
    project.write("tests/test_cart.py", TEST_CART)
    reviewed = Reviewed(Program(state, environment=environment), project, folder)
    reviewed.define("run-1")
    kept = factory.getbasetemp() / "firsthand-diagnosis.json"
    if not kept.exists():
        apart = replace(reviewed, program=replace(reviewed.program, state=folder / "apart"))
        answer = apart("preflight", "--model", MODEL, "--max-turns", "20")
        assert answer.status == 0, answer.err
        kept.write_text(answer.out)
    shutil.copyfile(kept, reviewed.diagnosis)
    return reviewed
