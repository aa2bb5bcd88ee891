"""Real installed distributions, written by hand: a metadata folder and a module in a folder on `sys.path`."""

from __future__ import annotations

import textwrap
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from firsthand.plugins import BACKENDS

GOOD_BACKEND = """
class Backend:
    name = "{name}"

    def availability(self):
        return None

    def enclose(self, workspace, limits, processes):
        raise NotImplementedError
"""


@dataclass(frozen=True)
class Site:
    """One folder on `sys.path`."""

    folder: Path

    def metadata(
        self, distribution: str, version: str, entry_points: str | bytes | None, *, kind: str = "dist-info"
    ) -> Path:
        """Write only the metadata of a distribution."""
        stem = distribution.replace("-", "_")
        folder = self.folder / f"{stem}-{version}.dist-info" if kind == "dist-info" else self.folder / f"{stem}.{kind}"
        folder.mkdir(parents=True)
        text = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        (folder / ("METADATA" if kind == "dist-info" else "PKG-INFO")).write_text(text)
        if isinstance(entry_points, bytes):
            (folder / "entry_points.txt").write_bytes(entry_points)
        elif entry_points is not None:
            (folder / "entry_points.txt").write_text(entry_points)
        return folder

    def install(
        self,
        distribution: str,
        name: str,
        source: str = GOOD_BACKEND,
        *,
        version: str = "1.0",
        group: str = BACKENDS,
        attribute: str = "Backend",
    ) -> str:
        """Install a distribution with one module and one entry point; returns the module's name, new each time."""
        module = f"plug_{uuid.uuid4().hex}"
        (self.folder / f"{module}.py").write_text(textwrap.dedent(source).replace("{name}", name))
        self.metadata(distribution, version, f"[{group}]\n{name} = {module}:{attribute}\n")
        return module


@pytest.fixture
def new_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Site]:
    """Makes folders on `sys.path`; each new one comes first."""

    def make() -> Site:
        folder = tmp_path / f"site-{uuid.uuid4().hex[:8]}"
        folder.mkdir()
        monkeypatch.syspath_prepend(str(folder))
        return Site(folder)

    return make


@pytest.fixture
def site(new_site: Callable[[], Site]) -> Site:
    return new_site()
