"""A real project: the sdist of `schema`, its own pytest suite, and a plan of mutations of its one module."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from benchmarks.harness.bench import Bench
from benchmarks.harness.row import CannotRunError
from benchmarks.projects.definition import write_definition

_SDIST: Final = "schema-0.7.8"
MODULE: Final = "schema/__init__.py"
_FILES: Final = ("README.rst", "LICENSE-MIT", MODULE, "schema/py.typed", "test_schema.py")
_CHANGES: Final = (
    (re.compile(r" is not None"), " is None"),
    (re.compile(r"\bif not "), "if "),
    (re.compile(r" == "), " != "),
    (re.compile(r" and "), " or "),
    (re.compile(r"\bif (?!not )"), "if not "),
    (re.compile(r"\breturn (?!None).+"), "return None"),
    (re.compile(r" = True$"), " = False"),
)


@dataclass(frozen=True, slots=True)
class Schema:
    """The project as the benchmarks use it.

    Attributes:
        root: a fresh copy with a definition.
        bare: a second copy, for what runs without a sandbox.
        config: the definition.
        python: interpreter of a virtual environment that holds pytest with its bytecode.
    """

    root: Path
    bare: Path
    config: Path
    python: Path

    @property
    def command(self) -> list[str]:
        """The registered argv."""
        return [str(self.python), "-m", "pytest", "-q", "test_schema.py"]

    def plan(self, count: int) -> list[dict[str, str]]:
        """Mutations spread over the whole module, each of whose old text occurs once."""
        found = list(_candidates((self.root / MODULE).read_text(encoding="utf-8")))
        if len(found) < count:
            raise CannotRunError(f"only {len(found)} mutations of {MODULE} were found")
        chosen = (found[place * len(found) // count] for place in range(count))
        return [{"check": "schema", "path": MODULE, "old": old, "new": new} for old, new in chosen]

    def write_plan(self, path: Path, mutations: Sequence[dict[str, str]]) -> Path:
        """Write a plan for `firsthand mutate`."""
        path.write_text(json.dumps(mutations), encoding="utf-8")
        return path


def schema_project(bench: Bench) -> Schema:
    """Two fresh copies of the project below the benchmark's scratch folder.

    The sdist and a virtual environment with pytest are fetched once, with pip, into the cache folder.

    Raises:
        CannotRunError: they are not there and can't be fetched.
    """
    source = bench.schema if bench.schema is not None else _fetched(bench.cache)
    missing = [name for name in _FILES if not (source / name).is_file()]
    if missing:
        raise CannotRunError(f"{source} is no unpacked {_SDIST}: {', '.join(missing)} missing")
    root, bare = bench.scratch / "schema", bench.scratch / "bare"
    for folder in (root, bare):
        for name in _FILES:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, folder / name)
    environment = _environment(bench.cache)
    python = environment / "bin" / "python"
    config = write_definition(
        root,
        files=_FILES,
        checks=[{"id": "schema", "command": [str(python), "-m", "pytest", "-q", "test_schema.py"]}],
        mutation_paths=[MODULE],
        toolchains=[environment],
    )
    return Schema(root=root, bare=bare, config=config, python=python)


def _candidates(text: str) -> Iterator[tuple[str, str]]:
    """Old and new text of one changed line each, in the module's order, all of which compile."""
    for line in text.splitlines():
        if text.count(f"\n{line}\n") != 1 or text.count(line) != 1 or line.lstrip().startswith(("#", '"')):
            continue
        for pattern, replacement in _CHANGES:
            changed = pattern.sub(replacement, line, count=1)
            if changed != line and _compiles(text.replace(line, changed)):
                yield line, changed
                break


def _compiles(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _fetched(cache: Path) -> Path:
    folder = cache / _SDIST
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as working:
        name, _, number = _SDIST.partition("-")
        _pip(
            sys.executable,
            "download",
            "--no-deps",
            "--no-binary",
            ":all:",
            f"{name}=={number}",
            "--dest",
            working,
        )
        with tarfile.open(Path(working, f"{_SDIST}.tar.gz")) as archive:
            archive.extractall(working, filter="data")
        Path(working, _SDIST).rename(folder)
    return folder


def _environment(cache: Path) -> Path:
    """A virtual environment of this interpreter's own installation with this environment's version of pytest."""
    pinned = f"pytest=={version('pytest')}"
    folder = cache / f"{pinned}-python{sys.version_info[0]}.{sys.version_info[1]}"
    if (folder / "complete").is_file():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True)
    _pip(str(folder / "bin" / "python"), "install", "--compile", pinned)
    (folder / "complete").touch()
    return folder


def _pip(python: str, *arguments: str) -> None:
    command = [python, "-m", "pip", "--disable-pip-version-check", *arguments]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        last = ended.stderr.strip().splitlines()[-1:] or ["no message"]
        raise CannotRunError(f"pip {arguments[0]} failed ({last[0][:200]}); give --schema DIR, or get online")
