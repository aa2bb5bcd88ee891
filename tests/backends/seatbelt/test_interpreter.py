from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from firsthand.isolation.interface import IsolationError
from firsthand_seatbelt.interpreter import this_interpreter


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python like Homebrew's: opt/python is a link to the cellar, and the interpreter is named through it."""
    base = Path(os.path.realpath(tmp_path))
    version = base / "Cellar" / "python" / "3.13"
    (version / "bin").mkdir(parents=True)
    (version / "bin" / "python3.13").touch(mode=0o755)
    (version / "Python").touch()
    (base / "opt").mkdir()
    (base / "opt" / "python").symlink_to("../Cellar/python/3.13")
    monkeypatch.setattr(sys, "_base_executable", str(base / "opt" / "python" / "bin" / "python3.13"))
    monkeypatch.setattr(sys, "base_prefix", str(base / "opt" / "python"))
    monkeypatch.setattr(sys, "prefix", str(base / "venv"))
    return base


class TestThisInterpreter:
    def test_the_real_one_can_be_shown(self, tmp_path: Path) -> None:
        if sys.base_prefix in {"/usr", "/usr/local"}:
            pytest.skip("this Python shares its prefix, which is refused (tested below)")
        found = this_interpreter((), home=str(tmp_path))
        assert os.access(found.executable, os.X_OK)
        assert any(found.executable.startswith(root) for root in found.roots)

    def test_the_installation_below_the_environment_is_shown_with_its_links(self, installed: Path) -> None:
        found = this_interpreter((), home="/nonexistent")
        assert found.executable == f"{installed}/Cellar/python/3.13/bin/python3.13"
        assert found.roots == (f"{installed}/Cellar/python/3.13",)
        assert found.links == (f"{installed}/opt/python",)

    def test_a_library_of_the_package_manager_is_shown_alone(self, installed: Path) -> None:
        keg = installed / "Cellar" / "gettext" / "0.22" / "lib"
        keg.mkdir(parents=True)
        (keg / "libintl.8.dylib").touch()
        (installed / "opt" / "gettext").symlink_to("../Cellar/gettext/0.22")
        images = (
            "/usr/lib/libSystem.B.dylib",
            "/usr/lib/system/not-on-disk.dylib",
            "/gone/libgone.dylib",
            str(installed / "opt" / "python" / "Python"),
            str(installed / "opt" / "gettext" / "lib" / "libintl.8.dylib"),
        )
        found = this_interpreter(images, home="/nonexistent")
        assert found.roots == (f"{installed}/Cellar/python/3.13", f"{keg}/libintl.8.dylib")
        assert f"{installed}/opt/gettext" in found.links

    def test_packages_of_the_environment_are_not_shown(self, installed: Path) -> None:
        site = installed / "venv" / "lib" / "site-packages"
        site.mkdir(parents=True)
        (site / "_core.so").touch()
        (installed / "elsewhere.so").touch()
        images = (str(site / "_core.so"), str(installed / "elsewhere.so"))
        assert this_interpreter(images, home="/nonexistent").roots == (f"{installed}/Cellar/python/3.13",)

    def test_a_prefix_that_holds_other_things_is_refused(
        self, installed: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(IsolationError, match="holds other things"):
            this_interpreter((), home=str(installed / "opt" / "python"))
        monkeypatch.setattr(sys, "base_prefix", "/usr/local")
        with pytest.raises(IsolationError, match="holds other things") as caught:
            this_interpreter((), home="/nonexistent")
        assert caught.value.where == "/usr/local"
