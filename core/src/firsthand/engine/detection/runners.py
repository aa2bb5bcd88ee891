"""Which test runners a project uses, and the command that runs its tests."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firsthand.engine.detection.tree import Tree

_HEAD_BYTES: Final = 65536
_PYTHON_TEST: Final = re.compile(r"(^|/)(test_[^/]*|[^/]*_test)\.py$")
_NODE_TEST: Final = re.compile(r"(^|/)([^/]*[.-](test|spec)|test[^/]*)\.(m?js|cjs)$|(^|/)test/.*\.(m?js|cjs)$")

_NODE_IMPORT: Final = re.compile(r"""["']node:test["']""")
_CARGO_DEPENDENCIES: Final = re.compile(r"^\[(?:dev-|build-)?dependencies\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Detected:
    """One check for the definition.

    Attributes:
        id: its id.
        command: its argv.
        sources: endings of the files that it is about; what else a project holds is registered last.
        toolchains: roots that must be named for it.
        remarks: what the user should know, in plain words.
    """

    id: str
    command: tuple[str, ...]
    sources: tuple[str, ...]
    toolchains: tuple[Path, ...] = ()
    remarks: tuple[str, ...] = ()


def detect(root: Path, tree: Tree, environment: Mapping[str, str]) -> list[Detected]:
    """Every runner that the project's own files show, in a fixed order."""
    return [
        *_python(root, tree, environment),
        *_node(root, tree),
        *_go(tree),
        *_cargo(root, tree),
    ]


def _python(root: Path, tree: Tree, environment: Mapping[str, str]) -> Iterator[Detected]:
    tests = [path for path in tree.files if _PYTHON_TEST.search(path)]
    if not tests:
        return
    sources = (".py", ".pyi", "pyproject.toml", "setup.cfg", "pytest.ini", "tox.ini", "py.typed")
    uses_pytest = any(
        "pytest" in _text(root / path)
        for path in (*tests, "pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini", "requirements-dev.txt")
        if tree.has(path)
    ) or any(path.endswith("conftest.py") for path in tree.files)
    uses_unittest = any("unittest" in _text(root / path) for path in tests)
    interpreter, toolchains, has_pytest = _interpreter(root, tree, environment)
    if has_pytest and (uses_pytest or not uses_unittest):
        command = (interpreter, "-m", "pytest", "-q", *_folders_of(tests))
        yield Detected("pytest", command, sources, toolchains)
    elif uses_unittest:
        remarks = ("the tests use pytest too, which no interpreter found here has",) if uses_pytest else ()
        where = _common_folder(tests)
        command = (interpreter, "-m", "unittest", "discover", *(("-s", where, "-t", ".") if where else ()))
        yield Detected("unittest", command, sources, toolchains, remarks)
    else:
        remark = (
            "no interpreter found here has pytest: make a virtual environment with it and run `firsthand init` again"
        )
        command = (interpreter, "-m", "pytest", "-q", *_folders_of(tests))
        yield Detected("pytest", command, sources, toolchains, (remark,))


def _interpreter(root: Path, tree: Tree, environment: Mapping[str, str]) -> tuple[str, tuple[Path, ...], bool]:
    """argv[0], the roots to name, and whether pytest stands in its site-packages."""
    candidates: list[tuple[str, Path]] = [
        (f"{folder.relative_to(root).as_posix()}/bin/python", folder) for folder in tree.virtual_environments
    ]
    active = environment.get("VIRTUAL_ENV")
    if active and os.path.isabs(active) and not Path(active).is_relative_to(root):
        candidates.append((f"{active}/bin/python", Path(active)))
    for program, prefix in candidates:
        if os.access(prefix / "bin" / "python", os.X_OK) and _has_pytest(prefix):
            return program, _roots_of(prefix), True
    for folder in environment.get("PATH", "").split(os.pathsep):
        found = Path(folder, "python3")
        # os.access, since a folder of PATH may be closed to this user.
        if os.path.isabs(folder) and os.access(found, os.X_OK) and _has_pytest(found.resolve().parent.parent):
            return "python3", (), True
    return "python3", (), False


def _roots_of(prefix: Path) -> tuple[Path, ...]:
    """A virtual environment and, if it lies beyond the system's runtime, the installation that it was made from."""
    base = (prefix / "bin" / "python").resolve().parent.parent
    return (prefix,) if base.is_relative_to("/usr") else (prefix, base)


def _has_pytest(prefix: Path) -> bool:
    places = (*prefix.glob("lib/python3*/site-packages"), *prefix.glob("lib/python3/dist-packages"))
    return any((place / "pytest").is_dir() for place in places)


def _node(root: Path, tree: Tree) -> Iterator[Detected]:
    if not tree.has("package.json"):
        return
    try:
        manifest = json.loads(_text(root / "package.json"))
    except ValueError:
        manifest = {}
    manifest = manifest if isinstance(manifest, dict) else {}
    scripts = manifest.get("scripts")
    script = str(scripts.get("test", "")) if isinstance(scripts, dict) else ""
    named = [path for path in tree.files if _NODE_TEST.search(path)]
    # A file without tests counts as one that ended early, so what does not use the runner is left out.
    tests = [path for path in named if _NODE_IMPORT.search(_text(root / path))] or named
    uses_node_test = (
        "node --test" in script or tests != named or any("node:test" in _text(root / path) for path in tests)
    )
    sources = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", "package.json", "tsconfig.json")
    toolchains = tuple(folder for folder in tree.dependencies if folder.name == "node_modules")
    remarks: tuple[str, ...] = (
        () if toolchains or not _depends(manifest) else ("run `npm install` first: checks have no network",)
    )
    if uses_node_test and tests:
        left_out = [path for path in named if path not in tests]
        if left_out:
            remarks += (f"left out, since nothing there imports node:test: {', '.join(left_out)}",)
        yield Detected("node", ("node", "--test", *tests), sources, toolchains, remarks)
    elif script:
        remark = f"package.json tests with {script!r}, which is not counted here: register its command with a runner"
        yield Detected("node", ("node", "--test"), sources, toolchains, (*remarks, remark))


def _depends(manifest: Mapping[str, object]) -> bool:
    return bool(manifest.get("dependencies") or manifest.get("devDependencies"))


def _go(tree: Tree) -> Iterator[Detected]:
    if tree.has("go.mod") and tree.names("_test.go"):
        vendor = tuple(folder for folder in tree.dependencies if folder.name == "vendor")
        remarks = () if vendor or not tree.has("go.sum") else ("run `go mod vendor` first: checks have no network",)
        yield Detected("go", ("go", "test", "./..."), (".go", "go.mod", "go.sum"), vendor, remarks)


def _cargo(root: Path, tree: Tree) -> Iterator[Detected]:
    if tree.has("Cargo.toml"):
        vendor = tuple(folder for folder in tree.dependencies if folder.name == "vendor")
        needs = not vendor and _CARGO_DEPENDENCIES.search(_text(root / "Cargo.toml"))
        remarks = ("run `cargo vendor` first, if it needs other crates: checks have no network",) if needs else ()
        sources = (".rs", "Cargo.toml", "Cargo.lock", ".cargo/config.toml")
        yield Detected("cargo", ("cargo", "test", "--offline"), sources, vendor, remarks)


def _folders_of(tests: list[str]) -> list[str]:
    """The top folder of the tests when they share one; else nothing, and the runner looks for itself."""
    tops = {path.split("/", 1)[0] for path in tests if "/" in path}
    return sorted(tops) if len(tops) == 1 and all("/" in path for path in tests) else []


def _common_folder(tests: list[str]) -> str:
    folders = {path.rpartition("/")[0] for path in tests}
    return folders.pop() if len(folders) == 1 else ""


def _text(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return stream.read(_HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
