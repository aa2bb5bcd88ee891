"""What is refused before anything runs: each with its code, in order, and with nothing left behind."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from e2e.program import Program
from e2e.project import PYTHON, Project
from firsthand.engine.preparation import prepare
from firsthand.errors import FirsthandError
from firsthand.plugins import Observers


def refused(project: Project, program: Program) -> FirsthandError:
    """The refusal, which leaves neither session nor evidence."""
    begun = time.monotonic()
    with pytest.raises(FirsthandError) as caught, prepare(project.config, program.state, Observers()):
        pytest.fail("it was prepared")
    assert time.monotonic() - begun < 10
    assert program.sessions() == []
    evidence = program.state / "evidence"
    assert not evidence.exists() or os.listdir(evidence) == []
    assert caught.value.next_step
    return caught.value


def test_a_definition_without_checks(program: Program, project: Project) -> None:
    project.write("REQUIREMENTS.md", "it works\n")
    package = {"requirements": ["REQUIREMENTS.md"], "instructions": []}
    tool_less = {"runId": "a", "runtime": "test", "reviewRuntime": "other", "stages": ["final"], "package": package}
    project.config.write_text(json.dumps(tool_less))
    error = refused(project, program)
    assert (error.code, error.exit_status) == ("usage", 2)
    assert "reviewVerification" in error.where
    answer = program("check", "--json", cwd=project.root)
    assert (answer.status, answer.json["status"]) == (2, "refused")


@pytest.mark.parametrize("place", [".", "state", "deep/er/state"])
def test_a_state_directory_inside_the_source(place: str, honest: Project) -> None:
    inside = Program(honest.root / place)
    answer = inside("check", "--json", cwd=honest.root)
    assert (answer.status, answer.json["code"]) == (2, "state_invalid")
    assert "source" in answer.json["message"]
    assert sorted(os.listdir(honest.root)) == ["cart.py", "firsthand.json", "test_cart.py"]


def test_a_state_directory_around_the_source(honest: Project) -> None:
    answer = Program(honest.root.parent)("check", "--json", cwd=honest.root)
    assert (answer.status, answer.json["code"]) == (2, "state_invalid")


def test_another_definition_under_a_known_run_id(program: Program, honest: Project) -> None:
    with prepare(honest.config, program.state, Observers()):
        pass
    original = honest.config.read_text()
    document = json.loads(original)
    document["reviewVerification"]["timeoutMs"] = 1000
    honest.config.write_text(json.dumps(document))
    error = refused(honest, program)
    assert (error.code, error.exit_status) == ("review_verification_definition_changed", 2)
    assert "runId" in error.next_step
    document["runId"] = "run-2"
    honest.config.write_text(json.dumps(document))
    with prepare(honest.config, program.state, Observers()):
        pass
    # Written otherwise, it is the same definition: the fingerprint is over its canonical form.
    honest.config.write_text(json.dumps(json.loads(original), indent=4, sort_keys=True))
    with prepare(honest.config, program.state, Observers()):
        pass


def test_a_file_that_can_not_be_frozen(program: Program, honest: Project) -> None:
    (honest.root / "cart.py").unlink()
    (honest.root / "cart.py").symlink_to("/etc/passwd")
    error = refused(honest, program)
    assert (error.code, error.exit_status) == ("review_verification_definition", 2)
    assert "cart.py" in error.where + error.message


def test_a_program_that_is_not_there(program: Program, project: Project) -> None:
    project.write("a.txt", "a")
    project.define(("absent", ["no-such-program-anywhere"]), files=["a.txt"], runner="exit")
    error = refused(project, program)
    assert (error.code, error.exit_status) == ("review_verification_definition", 2)
    assert "toolchains" in error.where


def test_a_toolchain_that_holds_the_source(program: Program, honest: Project) -> None:
    document = json.loads(honest.config.read_text())
    document["reviewVerification"]["toolchains"] = [str(honest.root.parent)]
    honest.config.write_text(json.dumps(document))
    error = refused(honest, program)
    assert (error.code, error.exit_status) == ("review_verification_definition", 2)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"runId": 1}', '{"runId": "a", "runId": "b"}', '{"runId": 1.0}', '{"x": NaN}', "\ufeff{}", "{}{}"],
)
def test_what_is_no_definition(text: str, program: Program, project: Project) -> None:
    project.config.write_text(text)
    error = refused(project, program)
    assert (error.code, error.exit_status) == ("review_verification_definition", 2)


def test_what_is_prepared_is_undone_at_the_end(program: Program, honest: Project) -> None:
    with prepare(honest.config, program.state, Observers()) as prepared:
        assert prepared.session.folder.parent == program.state / "sessions"
        assert program.sessions() == [prepared.session.id]
        assert set(prepared.checks) == {"total"}
        assert [one.sha256 for one in prepared.executables] == [prepared.closure.programs[PYTHON].sha256]
    assert program.sessions() == []
    with pytest.raises(RuntimeError, match="within"), prepare(honest.config, program.state, Observers()):
        raise RuntimeError("a fault within")
    assert program.sessions() == []


def test_a_session_that_died_is_swept_first(program: Program, honest: Project) -> None:
    dead = program.state / "sessions" / ("ab" * 8)
    (dead / "1-lanes" / "lane-0-0").mkdir(parents=True)
    (dead / "1-lanes").chmod(0)
    with prepare(honest.config, program.state, Observers()):
        assert not dead.exists()


def test_no_backend_no_check(cold: Program, honest: Project, tmp_path: Path) -> None:
    """Without any plug-in the refusal is the core's own; nothing runs plainly instead."""
    trap = tmp_path / "sprung"
    honest.shell(("runs", f"touch {trap}"))
    code = (
        "import importlib.metadata as metadata\n"
        "found = metadata.distributions\n"
        "metadata.distributions = lambda **k: (d for d in found(**k) if 'firsthand-' not in (d.name or ''))\n"
        "metadata.entry_points = lambda **k: metadata.EntryPoints()\n"
        "from firsthand.cli.app import main\n"
        "main()\n"
    )
    bare = Program(cold.state, (sys.executable, "-c", code))
    answer = bare("check", "--json", cwd=honest.root)
    assert (answer.status, answer.json["code"]) == (3, "review_verification_isolation_unavailable")
    assert answer.json["next"]
    assert not trap.exists()
    assert cold.sessions() == []
