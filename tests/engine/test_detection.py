"""What `init` finds in a project, and that every definition it drafts is one that is accepted."""

from __future__ import annotations

import json
import os
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from firsthand.definition import Definition, parse_definition
from firsthand.engine.detection import DraftError, draft
from firsthand.engine.detection.draft import Draft

PYTEST_FILE = "import pytest\n\ndef test_a():\n    assert True\n"
UNITTEST_FILE = "import unittest\n\nclass A(unittest.TestCase):\n    def test_a(self): pass\n"
NODE_FILE = "import test from 'node:test'\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def write(root: Path, path: str, text: str = "") -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def environment(root: Path, *, pytest_in: str | None = "venv", name: str = ".venv") -> Path:
    """A virtual environment as its files show it; nothing in it can run."""
    folder = root / name
    write(folder, "bin/python", "#!/bin/false\n").chmod(0o755)
    write(folder, "pyvenv.cfg", "home = /usr/bin\n")
    if pytest_in is not None:
        write(folder, "lib/python3.11/site-packages/pytest/__init__.py")
    return folder


def drafted(root: Path, env: dict[str, str] | None = None) -> tuple[Draft, Definition]:
    """The draft, and the definition that it is accepted as."""
    found = draft(root, env or {}, runtime="test", root_field=".", own=root / "firsthand.json")
    return found, parse_definition(json.dumps(found.definition).encode(), root)


def verification(found: Draft) -> Any:
    return found.definition["reviewVerification"]


def checks(found: Draft) -> dict[str, list[str]]:
    return {check["id"]: check["command"] for check in verification(found)["checks"]}


def test_pytest_in_a_virtual_environment_inside(root: Path) -> None:
    venv = environment(root)
    write(root, "tests/test_a.py", PYTEST_FILE)
    write(root, "a.py", "x = 1\n")
    write(root, "setup.py", "x = 1\n")
    write(root, "pyproject.toml", "")
    found, definition = drafted(root)
    assert checks(found) == {"pytest": [".venv/bin/python", "-m", "pytest", "-q", "tests"]}
    assert verification(found)["files"] == ["a.py", "pyproject.toml", "setup.py", "tests/test_a.py"]
    assert verification(found)["mutationPaths"] == ["a.py"]
    assert verification(found)["toolchains"][0] == str(venv)
    assert definition.document.review_verification is not None


def test_tests_at_the_top_are_found_by_the_runner_itself(root: Path) -> None:
    environment(root)
    write(root, "test_a.py", PYTEST_FILE)
    assert checks(drafted(root)[0]) == {"pytest": [".venv/bin/python", "-m", "pytest", "-q"]}


def test_the_active_virtual_environment_outside(root: Path, tmp_path: Path) -> None:
    venv = environment(tmp_path, name="elsewhere")
    write(root, "test_a.py", PYTEST_FILE)
    found, _ = drafted(root, {"VIRTUAL_ENV": str(venv)})
    assert checks(found)["pytest"][0] == f"{venv}/bin/python"
    assert str(venv) in verification(found)["toolchains"]


def test_pytest_without_an_interpreter_that_has_it_is_said(root: Path) -> None:
    environment(root, pytest_in=None)
    write(root, "test_a.py", PYTEST_FILE)
    found, _ = drafted(root)
    assert "pytest" in checks(found)
    assert any("virtual environment" in remark for remark in found.remarks)


def test_unittest(root: Path) -> None:
    write(root, "tests/test_a.py", UNITTEST_FILE)
    write(root, "tests/__init__.py")
    found, _ = drafted(root)
    assert checks(found) == {"unittest": ["python3", "-m", "unittest", "discover", "-s", "tests", "-t", "."]}


def test_a_folder_of_path_that_is_closed_is_passed_over(root: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    write(closed, "python3")
    closed.chmod(0)
    try:
        write(root, "test_a.py", UNITTEST_FILE)
        assert "unittest" in checks(drafted(root, {"PATH": str(closed)})[0])
    finally:
        closed.chmod(0o700)


def test_node(root: Path) -> None:
    write(root, "package.json", '{"scripts": {"test": "node --test"}}')
    write(root, "src/value.mjs", "export const value = 1\n")
    write(root, "test/value.test.mjs", NODE_FILE)
    write(root, "test/other.test.js", "const { test } = require('node:test')\n")
    found, _ = drafted(root)
    assert checks(found) == {"node": ["node", "--test", "test/other.test.js", "test/value.test.mjs"]}
    assert verification(found)["mutationPaths"] == ["src/value.mjs"]
    assert found.remarks == ()


def test_node_files_that_hold_no_tests_are_left_out_and_named(root: Path) -> None:
    write(root, "package.json", '{"scripts": {"test": "node --test"}, "devDependencies": {"jest": "1"}}')
    write(root, "test/value.test.mjs", NODE_FILE)
    write(root, "test/helper.js", "module.exports = 1\n")
    found, _ = drafted(root)
    assert checks(found) == {"node": ["node", "--test", "test/value.test.mjs"]}
    assert any("test/helper.js" in remark for remark in found.remarks)
    assert any("npm install" in remark for remark in found.remarks)
    assert "test/helper.js" in verification(found)["files"]


@pytest.mark.parametrize("manifest", ["", "[]", "{", '{"scripts": []}', '"text"', "null"])
def test_a_package_json_of_another_shape_is_no_fault(root: Path, manifest: str) -> None:
    write(root, "package.json", manifest)
    write(root, "test/value.test.mjs", NODE_FILE)
    assert checks(drafted(root)[0]) == {"node": ["node", "--test", "test/value.test.mjs"]}


def test_go(root: Path) -> None:
    write(root, "go.mod", "module a\n")
    write(root, "a.go", "package a\n")
    write(root, "a_test.go", "package a\n")
    found, _ = drafted(root)
    assert checks(found) == {"go": ["go", "test", "./..."]}
    assert verification(found)["mutationPaths"] == ["a.go"]
    assert found.remarks == ()
    write(root, "go.sum", "x")
    assert any("go mod vendor" in remark for remark in drafted(root)[0].remarks)
    write(root, "vendor/modules.txt")
    found, _ = drafted(root)
    assert found.remarks == ()
    assert verification(found)["toolchains"] == [str(root / "vendor")]
    assert "vendor/modules.txt" not in verification(found)["files"]


def test_cargo(root: Path) -> None:
    write(root, "Cargo.toml", '[package]\nname = "a"\n')
    write(root, "src/lib.rs", "pub fn a() {}\n")
    write(root, "build.rs", "fn main() {}\n")
    write(root, "tests/a.rs", "#[test]\nfn a() {}\n")
    found, _ = drafted(root)
    assert checks(found) == {"cargo": ["cargo", "test", "--offline"]}
    assert verification(found)["mutationPaths"] == ["src/lib.rs"]
    assert found.remarks == ()
    write(root, "Cargo.toml", '[package]\nname = "a"\n[dev-dependencies]\nserde = "1"\n')
    assert any("cargo vendor" in remark for remark in drafted(root)[0].remarks)
    write(root, ".cargo/config.toml", "[source]\n")
    write(root, ".cargo/credentials.toml", "secret\n")
    write(root, ".cargo/registry/a.rs", "x\n")
    registered = verification(drafted(root)[0])["files"]
    assert [path for path in registered if path.startswith(".cargo")] == [".cargo/config.toml"]


def test_all_runners_of_one_project(root: Path) -> None:
    write(root, "go.mod")
    write(root, "a_test.go")
    write(root, "Cargo.toml")
    write(root, "package.json", "{}")
    write(root, "a.test.mjs", NODE_FILE)
    write(root, "test_a.py", UNITTEST_FILE)
    found, _ = drafted(root)
    assert list(checks(found)) == ["unittest", "node", "go", "cargo"]


def test_documents_go_into_the_package(root: Path) -> None:
    write(root, "test_a.py", UNITTEST_FILE)
    write(root, "README.md")
    write(root, "AGENTS.md")
    found, _ = drafted(root)
    assert found.definition["package"] == {"requirements": ["README.md"], "instructions": ["AGENTS.md"]}


def test_a_definition_registers_neither_itself_nor_its_schema(root: Path) -> None:
    write(root, "test_a.py", UNITTEST_FILE)
    write(root, "firsthand.json", "{}")
    write(root, "firsthand.schema.json", "{}")
    assert verification(drafted(root)[0])["files"] == ["test_a.py"]


def test_what_a_definition_would_refuse_is_passed_over(root: Path, tmp_path: Path) -> None:
    write(root, "test_a.py", UNITTEST_FILE)
    for path in (
        ".env",
        ".git/config",
        "id_rsa",
        "a.pyc",
        "__pycache__/a.py",
        "node_modules/a/index.js",
        "dist/a.py",
        "a.egg-info/PKG-INFO",
        "back\\slash.py",
        "new\nline.py",
        "aws/.aws/config",
    ):
        write(root, path, "x")
    write(root, "big.py", "x" * (2 * 1024 * 1024 + 1))
    write(root, "setuid.py").chmod(stat.S_ISUID | 0o755)
    os.mkfifo(root / "pipe.py")
    (root / "link.py").symlink_to(write(tmp_path, "outside.py"))
    (root / "folder").symlink_to(tmp_path)
    (root / "dangling.py").symlink_to("absent")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(root / "socket.py"))
    assert verification(drafted(root)[0])["files"] == ["test_a.py"]


def test_a_closed_folder_is_passed_over(root: Path) -> None:
    write(root, "test_a.py", UNITTEST_FILE)
    write(root, "closed/a.txt")
    (root / "closed").chmod(0)
    try:
        assert "test_a.py" in verification(drafted(root)[0])["files"]
    finally:
        (root / "closed").chmod(0o700)


def test_more_files_than_a_definition_holds_leave_only_what_the_runner_is_about(root: Path) -> None:
    write(root, "test_a.py", UNITTEST_FILE)
    write(root, "README.md")
    for number in range(300):
        write(root, f"data/{number}.bin")
    assert verification(drafted(root)[0])["files"] == ["README.md", "test_a.py"]


def test_more_sources_than_a_definition_holds_are_refused_with_the_numbers(root: Path) -> None:
    for number in range(257):
        write(root, f"test_{number}.py", UNITTEST_FILE)
    with pytest.raises(DraftError, match=r"257 files .* at most 256") as refused:
        drafted(root)
    assert refused.value.next_step


def test_nothing_found_is_a_refusal_with_a_next_step(root: Path) -> None:
    write(root, "notes.txt")
    with pytest.raises(DraftError, match="no tests") as refused:
        drafted(root)
    assert refused.value.exit_status == 2
    assert refused.value.next_step


def test_a_name_that_no_run_may_have_becomes_one(tmp_path: Path) -> None:
    root = tmp_path / "über project (1)!"
    write(root, "test_a.py", UNITTEST_FILE)
    found, _ = drafted(root)
    assert found.definition["runId"] == "ber-project-1-1"


def test_nothing_of_the_project_is_executed(root: Path, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    script = f"#!/bin/sh\ntouch {trap}\n"
    venv = environment(root)
    for path in (venv / "bin/python", root / "node", root / "go", root / "cargo"):
        path.write_text(script)
        path.chmod(0o755)
    code = f"open({str(trap)!r}, 'w')\n"
    for name in (
        "setup.py",
        "conftest.py",
        "test_a.py",
        "sitecustomize.py",
        ".venv/lib/python3.11/site-packages/a.pth",
    ):
        write(root, name, code)
    write(root, "package.json", json.dumps({"scripts": {"test": f"touch {trap}", "prepare": f"touch {trap}"}}))
    write(root, "build.rs", "fn main() {}\n")
    write(root, "Cargo.toml", "[package]\n")
    drafted(root, {"PATH": str(root), "VIRTUAL_ENV": str(venv)})
    assert not trap.exists()
