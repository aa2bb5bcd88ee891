"""A fresh virtual environment with the documented examples installed into it, as a stranger would."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

EXAMPLES = tuple(sorted((Path(__file__).parents[2] / "docs" / "plugins").glob("example-*")))

InVenv: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]


def _uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        pytest.skip("uv is not installed beside this Python")
    return found


@pytest.fixture(scope="session")
def venv_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a virtual environment that sees this one's distributions and has the examples of its own."""
    uv = _uv()
    place = tmp_path_factory.mktemp("example")
    venv = place / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    python = venv / ("Scripts" if os.name == "nt" else "bin") / "python"
    asked = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    purelib = Path(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip())
    # The dependencies and the members under development, by the running environment's own folders and .pth files.
    folders = {sysconfig.get_path("purelib"), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))}
    lines = [f"import site; site.addsitedir({folder!r})\n" for folder in sorted(folders)]
    (purelib / "_running.pth").write_text("".join(lines))
    sources = [shutil.copytree(example, place / "source" / example.name) for example in EXAMPLES]
    install = [uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--no-build-isolation"]
    environment = {**os.environ, "UV_CACHE_DIR": str(place / "cache")}
    subprocess.run([*install, "--python", str(python), *map(str, sources)], check=True, env=environment)
    return python


@pytest.fixture
def in_venv(venv_python: Path, tmp_path: Path) -> InVenv:
    """Runs a program in that environment; its own output is the answer."""

    def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(venv_python), "-c", program, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            timeout=240,
        )

    return run
