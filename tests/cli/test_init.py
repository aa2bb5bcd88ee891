"""`firsthand init`: what it writes, what it refuses, and the id of a definition that replaces another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from e2e.program import Program
from e2e.project import TEST_CART, Project


def written(project: Project) -> Any:
    return json.loads(project.config.read_text())


def test_it_writes_a_definition_with_its_schema(cold: Program, project: Project) -> None:
    project.write("test_cart.py", TEST_CART)
    answer = cold("init", "--json", "--runtime", "codex", cwd=project.root)
    assert answer.status == 0
    assert answer.json["files"] == 1
    assert len(answer.json["fingerprint"]) == 64
    assert written(project)["runtime"] == "codex"
    assert written(project)["$schema"] == "./firsthand.schema.json"
    assert "reviewVerification" in (project.root / "firsthand.schema.json").read_text()
    assert not cold.state.exists()


def test_it_never_replaces_what_is_there_unless_told(cold: Program, project: Project) -> None:
    project.write("test_cart.py", TEST_CART)
    project.config.write_text("mine")
    answer = cold("init", cwd=project.root)
    assert answer.status == 2
    assert "--force" in answer.err
    assert project.config.read_text() == "mine"
    project.config.unlink()
    project.config.symlink_to("absent")
    assert cold("init", cwd=project.root).status == 2
    assert not (project.root / "absent").exists()


def test_another_definition_in_its_place_gets_the_next_id(cold: Program, project: Project) -> None:
    project.write("test_cart.py", TEST_CART)
    ids = []
    for added in ("", "", "one.py", "", "two.py"):
        if added:
            project.write(added, "x = 1\n")
        assert cold("init", "--force", cwd=project.root).status == 0
        ids.append(written(project)["runId"])
    assert ids == ["project-1", "project-1", "project-2", "project-2", "project-3"]


def test_a_place_that_can_not_be_written_is_a_refusal(cold: Program, project: Project, tmp_path: Path) -> None:
    project.write("test_cart.py", TEST_CART)
    answer = cold("init", "--config", tmp_path / "absent" / "firsthand.json", cwd=project.root)
    assert answer.status == 2
    assert "Traceback" not in answer.err


def test_a_definition_elsewhere_names_the_project(cold: Program, project: Project, tmp_path: Path) -> None:
    project.write("test_cart.py", TEST_CART)
    (tmp_path / "definitions").mkdir()
    config = tmp_path / "definitions" / "run.json"
    assert cold("init", project.root, "--config", config, cwd=tmp_path).status == 0
    assert json.loads(config.read_text())["root"] == "../project"
