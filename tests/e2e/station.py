"""A place where a user keeps projects: the program as that user runs it, a state directory, and a folder."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.program import Program
from firsthand.files import remove_path

ORDINARY = 65534
"""A uid without files or rights; also its gid."""

_OURS = ("firsthand", "firsthand_bubblewrap", "firsthand_unavailable")
_NEEDLESS = (
    "ruff*",
    "mypy*",
    "uv*",
    "hypothesis*",
    "pip*",
    "setuptools*",
    "hatchling*",
    "__pycache__",
    "*.pth",
    "*.pyc",
)
_PYTEST = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments")


@dataclass(frozen=True)
class Station:
    """One user's place; its folder may be read by that user."""

    program: Program
    folder: Path

    def own(self, path: Path) -> None:
        """Give a tree to the station's user."""
        user = self.program.user
        if user is not None:
            for each in (path, *path.rglob("*")):
                os.chown(each, user, user, follow_symlinks=False)

    def which(self, name: str) -> str | None:
        """A program that this user finds."""
        return shutil.which(name, path=self.program.environment["PATH"])


@contextmanager
def ordinary_station() -> Iterator[Station]:
    """The station of an ordinary user, for a test that runs as root.

    Raises:
        LookupError: no interpreter like this one may be executed by that user.
    """
    folder = Path(tempfile.mkdtemp(prefix="firsthand-test-"))
    try:
        folder.chmod(0o755)
        (folder / "home").mkdir()
        packages = folder / "packages"
        _copy_packages(packages)
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder / "home"),
            "PYTHONPATH": str(packages),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        program = Program(
            folder / "home" / "state", (_interpreter(), "-m", "firsthand.cli"), environment=environment, user=ORDINARY
        )
        station = Station(program, folder)
        station.own(folder)
        yield station
    finally:
        remove_path(folder)


def _copy_packages(target: Path) -> None:
    """What is installed here, and our own packages from wherever they lie, where anybody may read them."""
    installed = Path(_origin("pydantic")).parent
    shutil.copytree(installed, target, ignore=shutil.ignore_patterns(*_NEEDLESS))
    for name in _OURS:
        if not (target / name).exists():
            shutil.copytree(_origin(name), target / name, ignore=shutil.ignore_patterns("__pycache__"))


def _origin(package: str) -> str:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return spec.submodule_search_locations[0]


def _interpreter() -> str:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    question = "import sys; print(f'{sys.version_info.major}.{sys.version_info.minor}')"
    for candidate in (os.path.realpath(sys.executable), f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        try:
            done = subprocess.run(
                [candidate, "-c", question],
                user=ORDINARY,
                group=ORDINARY,
                extra_groups=[],
                cwd="/",
                env={},
                capture_output=True,
                check=False,
                text=True,
            )
        except OSError:
            continue
        if done.stdout.strip() == version:
            return candidate
    raise LookupError(f"no Python {version} that an ordinary user may execute")


def virtual_environment(folder: Path) -> Path:
    """An environment with pytest from the packages that are installed here; nothing is downloaded or executed."""
    base = Path("/usr/bin/python3") if Path("/usr/bin/python3").exists() else Path(os.path.realpath(sys.executable))
    version = base.resolve().name.removeprefix("python")
    packages = folder / "lib" / f"python{version}" / "site-packages"
    packages.mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(base)
    (folder / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")
    for name in _PYTEST:
        shutil.copytree(_origin(name), packages / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(Path(_origin("pytest")).with_name("py.py"), packages)
    return folder
