from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firsthand.files import FileWriteError, MakingCursor, make_private_folder, open_private_folder, write_fresh

UMASKS = (0o000, 0o022, 0o077, 0o777)


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    folder_fd = os.open(tmp_path, os.O_RDONLY)
    yield folder_fd
    os.close(folder_fd)


@pytest.fixture(params=UMASKS, ids=[f"{umask:03o}" for umask in UMASKS])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o444, 0o000, 0o777, 0o1644, 0o222])
def test_the_mode_is_exact_under_any_umask(tmp_path: Path, fd: int, umask: int, mode: int) -> None:
    write_fresh(fd, b"f", b"data", mode)
    assert mode_of(tmp_path / "f") == mode
    (tmp_path / "f").chmod(0o600)
    assert (tmp_path / "f").read_bytes() == b"data"


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o400, 0o000, 0o777, 0o070])
def test_the_mode_is_never_wider_before_the_end(
    tmp_path: Path, fd: int, umask: int, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    really_write, really_fchmod = os.write, os.fchmod

    def write(target: int, data: bytes) -> int:
        seen.append(mode_of(tmp_path / "f"))
        return really_write(target, data)

    def fchmod(target: int, wanted: int) -> None:
        seen.append(mode_of(tmp_path / "f"))
        really_fchmod(target, wanted)

    monkeypatch.setattr("firsthand.files.writing.os.write", write)
    monkeypatch.setattr("firsthand.files.writing.os.fchmod", fchmod)
    write_fresh(fd, b"f", b"data", mode)
    assert len(seen) == 2
    assert all(each & ~(mode & 0o600) == 0 for each in seen)


def test_short_writes_are_continued(tmp_path: Path, fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    really_write = os.write
    monkeypatch.setattr("firsthand.files.writing.os.write", lambda target, data: really_write(target, data[:5]))
    write_fresh(fd, b"f", bytes(range(256)), 0o600)
    assert (tmp_path / "f").read_bytes() == bytes(range(256))


def test_what_stands_there_is_never_written_through(tmp_path: Path, fd: int) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"mine")
    (tmp_path / "link").symlink_to(outside)
    (tmp_path / "dangling").symlink_to(tmp_path / "elsewhere")
    os.link(outside, tmp_path / "hard")
    os.mkfifo(tmp_path / "fifo")
    for name in (b"link", b"dangling", b"hard", b"fifo", b"outside"):
        with pytest.raises(FileWriteError):
            write_fresh(fd, name, b"theirs", 0o644)
    assert outside.read_bytes() == b"mine"
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_begun_is_removed_when_the_write_fails(tmp_path: Path, fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(target: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("firsthand.files.writing.os.write", full)
    with pytest.raises(FileWriteError, match="No space left"):
        write_fresh(fd, b"f", b"data", 0o600)
    assert list(tmp_path.iterdir()) == []


def test_a_private_folder_is_private_under_any_umask(tmp_path: Path, umask: int) -> None:
    make_private_folder(tmp_path / "d")
    assert mode_of(tmp_path / "d") == 0o700
    os.close(open_private_folder(tmp_path / "d"))


def test_a_folder_is_made_only_where_nothing_stands(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "d").mkdir()
    for name in ("link", "d", "absent/d"):
        with pytest.raises(FileWriteError):
            make_private_folder(tmp_path / name)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_others_reach_or_own_is_not_private(tmp_path: Path) -> None:
    (tmp_path / "wide").mkdir()
    (tmp_path / "wide").chmod(0o750)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine").chmod(0o700)
    (tmp_path / "link").symlink_to("mine")
    (tmp_path / "file").write_bytes(b"")
    for name in ("wide", "link", "file", "absent"):
        with pytest.raises(FileWriteError):
            open_private_folder(tmp_path / name)
    if os.geteuid() == 0:
        os.chown(tmp_path / "mine", 65534, 65534)
        with pytest.raises(FileWriteError, match="owner"):
            open_private_folder(tmp_path / "mine")


def test_folders_of_a_copy_have_their_exact_mode(tmp_path: Path, fd: int, umask: int) -> None:
    with MakingCursor(fd, 0o755) as cursor:
        write_fresh(cursor.at((b"a", b"b", b"c")), b"f", b"x", 0o644)
        cursor.at((b"a", b"d"))
    assert {mode_of(tmp_path / name) for name in ("a", "a/b", "a/b/c", "a/d")} == {0o755}


def test_a_making_cursor_follows_no_link(tmp_path: Path, fd: int) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "a").symlink_to("elsewhere")
    with MakingCursor(fd, 0o755) as cursor, pytest.raises(FileWriteError, match="symlink"):
        cursor.at((b"a", b"b"))
    assert list((tmp_path / "elsewhere").iterdir()) == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=2048), mode=st.integers(0, 0o1777))
def test_any_bytes_and_mode_are_written_exactly(tmp_path: Path, fd: int, data: bytes, mode: int) -> None:
    write_fresh(fd, b"any", data, mode)
    path = tmp_path / "any"
    found = mode_of(path)
    path.chmod(0o600)
    written = path.read_bytes()
    path.unlink()
    assert (written, found) == (data, mode)
