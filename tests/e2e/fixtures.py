"""Fixtures that drive the program; each folder's conftest imports the ones it needs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.program import Program
from e2e.project import Project, cart
from firsthand.isolation.interface import Unavailable
from firsthand_bubblewrap.backend import BubblewrapBackend

WARM = "firsthand-warm"


def warm_state(factory: pytest.TempPathFactory) -> Path:
    """A state directory that holds a passed battery's report and nothing else; made once, whoever asks first."""
    if sys.platform != "linux":
        pytest.skip("drives the sandbox of Linux")
    place = factory.getbasetemp() / WARM
    if not place.exists():
        project = cart(factory.mktemp("warm"))
        draft = place.with_name(f"{WARM}-draft")
        launcher = BubblewrapBackend().availability()
        if isinstance(launcher, Unavailable):
            pytest.skip(launcher.reason)
        answer = Program(draft)("check", cwd=project.root)
        assert answer.status == 0, answer.err
        shutil.rmtree(draft / "evidence")
        shutil.rmtree(draft / "ledger")
        (draft / "ledger-head").unlink()
        draft.rename(place)
    return place


@pytest.fixture
def program(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The program, with a fresh state directory whose battery has passed."""
    state = tmp_path / "state"
    shutil.copytree(warm_state(tmp_path_factory), state)
    return Program(state)


@pytest.fixture
def cold(tmp_path: Path) -> Program:
    """The program with no state directory yet."""
    return Program(tmp_path / "state")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty project."""
    (tmp_path / "project").mkdir()
    return Project(tmp_path / "project")


@pytest.fixture
def honest(tmp_path: Path) -> Project:
    """A project whose one check is green."""
    return cart(tmp_path / "project")


Tree = Callable[[Path], dict[str, tuple[bytes, tuple[int, ...]]]]


@pytest.fixture(scope="session")
def tree() -> Tree:
    """Reads a folder: each path with its bytes and everything in its stat but the time of access."""

    def read(folder: Path) -> dict[str, tuple[bytes, tuple[int, ...]]]:
        found: dict[str, tuple[bytes, tuple[int, ...]]] = {}
        for path in (folder, *sorted(folder.rglob("*"))):
            status = path.lstat()
            identity = (
                status.st_mode,
                status.st_ino,
                status.st_nlink,
                status.st_uid,
                status.st_gid,
                status.st_size,
                status.st_mtime_ns,
                status.st_ctime_ns,
            )
            found[path.relative_to(folder).as_posix()] = (path.read_bytes() if path.is_file() else b"", identity)
        return found

    return read
