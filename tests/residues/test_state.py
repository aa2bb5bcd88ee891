from __future__ import annotations

import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from firsthand.errors import StateError
from firsthand.residues import Session, StateDirectory, list_residues

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX")


def refused(path: Path, source: Path | None = None) -> StateError:
    with pytest.raises(StateError) as caught:
        StateDirectory.open(path, source=source)
    assert caught.value.code == "state_invalid"
    assert caught.value.exit_status == 2
    assert caught.value.where
    assert caught.value.next_step
    return caught.value


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_it_is_made_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        state = StateDirectory.open(tmp_path / "a" / "b" / "state")
        with Session.open(state) as session:
            assert list_residues(state) == []
            assert all(path.stat().st_mode & 0o777 == 0o600 for path in session.folder.iterdir())
        StateDirectory.open(state.path)
    finally:
        os.umask(before)
    for folder in (state.path, state.sessions, state.evidence, state.cache, state.ledger):
        found = folder.stat()
        assert stat.S_IMODE(found.st_mode) == 0o700
        assert found.st_uid == os.geteuid()
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    first = StateDirectory.open(tmp_path / "state")
    (first.evidence / "e.json").write_text("{}")
    assert StateDirectory.open(tmp_path / "state") == first
    assert (first.evidence / "e.json").read_text() == "{}"


def test_the_default_is_the_platforms_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    state = StateDirectory.open()
    assert state.path.name == "firsthand"
    assert tmp_path in state.path.parents
    if sys.platform == "linux":
        assert state.path == tmp_path / "firsthand"


def test_many_may_open_a_new_one_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        states = list(pool.map(lambda _: StateDirectory.open(tmp_path / "state"), range(64)))
    assert set(states) == {states[0]}


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o710, 0o500, 0o777])
def test_a_mode_other_than_0700_is_refused_and_left(tmp_path: Path, mode: int) -> None:
    place = tmp_path / "state"
    StateDirectory.open(place)
    place.chmod(mode)
    error = refused(place)
    assert f"{mode:04o}" in error.message
    assert "chmod 700" in error.next_step
    assert stat.S_IMODE(place.stat().st_mode) == mode
    place.chmod(0o700)


@pytest.mark.parametrize("name", ["sessions", "evidence", "cache", "ledger"])
def test_so_are_its_folders(tmp_path: Path, name: str) -> None:
    place = StateDirectory.open(tmp_path / "state").path
    (place / name).chmod(0o750)
    assert refused(place).where == str(place / name)
    (place / name).rmdir()
    (place / name).symlink_to(tmp_path)
    assert "symbolic link" in refused(place).message


def test_a_link_is_refused(tmp_path: Path) -> None:
    real = StateDirectory.open(tmp_path / "real").path
    (tmp_path / "state").symlink_to(real)
    assert "symbolic link" in refused(tmp_path / "state").message
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert "symbolic link" in refused(tmp_path / "dangling").message
    assert not (tmp_path / "nowhere").exists()


def test_a_link_above_it_is_resolved(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert StateDirectory.open(tmp_path / "link" / "state").path == (tmp_path / "real" / "state").resolve()


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    assert "not a folder" in refused(tmp_path / "state").message
    assert "can't be made" in refused(tmp_path / "state" / "below").message


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    place = StateDirectory.open(tmp_path / "state").path
    os.chown(place, 12345, 12345)
    assert "belongs to uid 12345" in refused(place).message


def test_a_folder_with_somebody_elses_files_is_never_taken_over(tmp_path: Path) -> None:
    place = tmp_path / "home"
    (place / "sessions" / "0123456789abcdef").mkdir(parents=True)
    place.chmod(0o700)
    assert "no state directory" in refused(place).message
    assert os.listdir(place) == ["sessions"]


def test_a_mark_that_a_crash_left_empty_is_completed_and_another_versions_is_refused(tmp_path: Path) -> None:
    place = StateDirectory.open(tmp_path / "state").path
    marker = place / "firsthand-state"
    good = marker.read_bytes()
    marker.write_bytes(b"")
    StateDirectory.open(place)
    assert marker.read_bytes() == good
    marker.write_bytes(b"2\n")
    assert "another version" in refused(place).message


def test_a_place_inside_or_around_the_source_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (tmp_path / "link").symlink_to(source)
    for place in (source, source / "state", source / "a" / "b", tmp_path / "link" / "state"):
        assert "inside the source" in refused(place, source).message
    assert "inside the source" in refused(source / "state", tmp_path / "link").message
    assert os.listdir(source) == []
    state = StateDirectory.open(tmp_path / "state")
    inner = state.evidence / "project"
    inner.mkdir()
    assert "around the source" in refused(state.path, inner).message
    assert StateDirectory.open(tmp_path / "source-state", source=source).path.parent == tmp_path
