"""Every backend that is installed here, and enclosures around small copies for it.

A backend that says that it can't confine on this machine is asked only what can be asked of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import pytest

from firsthand.isolation.battery.interpreter import host_interpreter
from firsthand.isolation.interface import Available, Backend, Enclosure, Limits, Request, Result, Workspace

GROUP = "firsthand.backends"


NEEDS_CONFINEMENT = {"available", "backend", "enter", "box", "shared"}


def _confines(entry: EntryPoint) -> bool:
    try:
        return isinstance(entry.load()().availability(), Available)
    except Exception:  # noqa: BLE001 - one that can't be loaded fails the tests that need no confinement, by its name
        return False


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend_entry" not in metafunc.fixturenames:
        return
    found: list[Any] = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    if NEEDS_CONFINEMENT & set(metafunc.fixturenames):
        found = [entry for entry in found if _confines(entry)] or [
            pytest.param(None, marks=pytest.mark.skip(reason="no installed backend can confine on this machine"))
        ]
    metafunc.parametrize("backend_entry", found, ids=lambda entry: getattr(entry, "name", "none"), scope="session")


@pytest.fixture(scope="session")
def loaded(backend_entry: EntryPoint) -> Backend:
    """The backend, whether or not it can confine here."""
    backend: Backend = backend_entry.load()()
    return backend


@pytest.fixture(scope="session")
def available(loaded: Backend) -> Available:
    answer = loaded.availability()
    assert isinstance(answer, Available)
    return answer


@pytest.fixture(scope="session")
def backend(loaded: Backend, available: Available) -> Backend:
    return loaded


@dataclass
class Watch:
    """Notes what a backend enters into the residue register."""

    begun: list[int] = field(default_factory=list)
    over: list[int] = field(default_factory=list)

    def started(self, pid: int) -> None:
        self.begun.append(pid)

    def ended(self, pid: int) -> None:
        self.over.append(pid)


@dataclass
class Box:
    """One open enclosure, and the host's view of its copy."""

    enclosure: Enclosure
    copy: Path
    shown_at: Path
    watch: Watch

    def sh(self, script: str, *, timeout_s: float = 20.0, cwd: str = ".", **environment: str) -> Result:
        return self.run(["/bin/sh", "-c", script], timeout_s=timeout_s, cwd=cwd, environment=environment)

    def python(self, script: str, *arguments: str, timeout_s: float = 20.0) -> Result:
        return self.run([*host_interpreter().command, "-c", script, *arguments], timeout_s=timeout_s)

    def run(self, argv: Sequence[str], *, timeout_s: float = 20.0, **more: Any) -> Result:
        return self.enclosure.run(Request(argv=tuple(argv), executable=argv[0], timeout_s=timeout_s, **more))

    def rewrite(self, path: str, data: bytes, mode: int = 0o644) -> None:
        self.enclosure.rewrite(path, data, mode)


Enter = Callable[..., Box]


FILES = {"note.txt": b"note\n", "below/deep.txt": b"deep\n"}


def open_box(stack: ExitStack, backend: Backend, place: Path, files: dict[str, bytes], limits: Limits) -> Box:
    copy, source, private = (place / name for name in ("copy", "source", "private"))
    for folder in (copy, source, private):
        folder.mkdir(parents=True, mode=0o700)
    for name, content in files.items():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes(content)
    workspace = Workspace(
        copy=copy, shown_at=source, private=private, roots=host_interpreter().roots, token=f"contract-{place.name}"
    )
    watch = Watch()
    return Box(stack.enter_context(backend.enclose(workspace, limits, watch)), copy, source, watch)


@pytest.fixture
def enter(backend: Backend, tmp_path: Path) -> Iterator[Enter]:
    """Open an enclosure around a copy with the given files; all are closed at the end of the test."""
    with ExitStack() as stack:
        count = 0

        def call(files: dict[str, bytes] | None = None, limits: Limits | None = None) -> Box:
            nonlocal count
            count += 1
            place = Path(os.path.realpath(tmp_path)) / f"box-{count}"
            return open_box(stack, backend, place, files or {}, limits or Limits())

        yield call


@pytest.fixture
def box(enter: Enter) -> Box:
    """A fresh enclosure."""
    return enter(FILES)


@pytest.fixture(scope="module")
def shared(backend: Backend, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """One enclosure for a file's tests that leave nothing behind that another would mind."""
    with ExitStack() as stack:
        place = Path(os.path.realpath(tmp_path_factory.mktemp("shared"))) / "box"
        yield open_box(stack, backend, place, FILES, Limits())
