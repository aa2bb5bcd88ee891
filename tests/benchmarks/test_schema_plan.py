from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.harness.bench import Bench
from benchmarks.harness.row import CannotRunError
from benchmarks.projects.schema import MODULE, Schema, schema_project

TEXT = "".join(
    f"def f{number}(a, b):\n    if a == {number}:\n        return b + {number}\n    return None\n"
    for number in range(10, 22)
)


@pytest.fixture
def project(tmp_path: Path) -> Schema:
    file = tmp_path / MODULE
    file.parent.mkdir()
    file.write_text(TEXT, encoding="utf-8")
    return Schema(root=tmp_path, bare=tmp_path, config=tmp_path / "firsthand.json", python=Path("/usr/bin/python3"))


def test_each_mutation_applies_once_compiles_and_differs(project: Schema) -> None:
    plan = project.plan(20)
    assert len({each["old"] for each in plan}) == 20
    for each in plan:
        assert TEXT.count(each["old"]) == 1
        assert each["old"] != each["new"]
        compile(TEXT.replace(each["old"], each["new"]), MODULE, "exec")


def test_the_plan_is_the_same_each_time(project: Schema) -> None:
    assert project.plan(7) == project.plan(7)


def test_too_small_a_module_is_a_reason_and_not_a_smaller_plan(project: Schema) -> None:
    with pytest.raises(CannotRunError, match="only 24 mutations"):
        project.plan(25)


def test_a_folder_that_is_not_the_sdist_is_a_reason(tmp_path: Path) -> None:
    bench = Bench(scratch=tmp_path, state=tmp_path / "state", cache=tmp_path / "cache", schema=tmp_path)
    with pytest.raises(CannotRunError, match=r"LICENSE-MIT.* missing"):
        schema_project(bench)
    assert not (tmp_path / "cache").exists()
