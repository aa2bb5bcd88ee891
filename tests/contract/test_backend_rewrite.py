"""Rewriting one file of the copy: exact bytes, exact mode, in confinement and through no link."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firsthand.isolation.interface import IsolationError

CONTENTS = [
    b"",
    b"\x00",
    b"\xef\xbb\xbfa\r\nb\rc",
    b"\xff\xfe",
    "漢字\u2028".encode(),
    b"x" * (2 * 1024 * 1024),
    b"-n \\c",
]


@pytest.mark.parametrize("content", CONTENTS, ids=range(len(CONTENTS)))
def test_bytes_are_exact(shared: Any, content: bytes) -> None:
    shared.rewrite("note.txt", content)
    assert (shared.copy / "note.txt").read_bytes() == content
    assert shared.sh("wc -c <note.txt").stdout.data.split() == [str(len(content)).encode()]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300), st.sampled_from([0o600, 0o644, 0o755, 0o640, 0o777]))
def test_any_bytes_and_mode_are_exact(shared: Any, content: bytes, mode: int) -> None:
    shared.rewrite("below/deep.txt", content, mode)
    found = (shared.copy / "below" / "deep.txt").lstat()
    assert (shared.copy / "below" / "deep.txt").read_bytes() == content
    assert stat.S_ISREG(found.st_mode)
    assert stat.S_IMODE(found.st_mode) == mode
    assert found.st_nlink == 1


@pytest.mark.parametrize("mode", [0o400, 0o444, 0o600, 0o644, 0o700, 0o755, 0o664])
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_the_mode_is_exact_whatever_the_umask(shared: Any, mode: int, umask: int) -> None:
    before = os.umask(umask)
    try:
        shared.rewrite("note.txt", b"x", mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE((shared.copy / "note.txt").lstat().st_mode) == mode


def test_nothing_else_in_the_copy_changes(box: Any) -> None:
    def others() -> dict[str, tuple[bytes, int]]:
        return {
            str(path.relative_to(box.copy)): (path.read_bytes(), path.stat().st_mode)
            for path in box.copy.rglob("*")
            if path.is_file() and path.name != "note.txt"
        }

    before = others()
    box.rewrite("note.txt", b"new")
    assert others() == before


@pytest.mark.parametrize("mode", [0o444, 0o400])
def test_a_read_only_file_is_rewritten(box: Any, mode: int) -> None:
    box.rewrite("note.txt", b"first", mode)
    box.rewrite("note.txt", b"second", mode)
    assert box.sh("cat note.txt").stdout.data == b"second"


@pytest.mark.parametrize("name", ["a b", "-n", "--", "below/-n", "$HOME", "é", "new\nline", "'\"", "*"])
def test_any_name_is_taken_as_it_is(shared: Any, name: str) -> None:
    (shared.copy / name).write_bytes(b"old")
    (shared.copy / name).chmod(0o666)
    before = sorted(shared.copy.rglob("*"))
    shared.rewrite(name, b"new")
    assert (shared.copy / name).read_bytes() == b"new"
    assert sorted(shared.copy.rglob("*")) == before


def test_the_next_command_sees_it(box: Any) -> None:
    for word in (b"one\n", b"two\n"):
        box.rewrite("note.txt", word)
        assert box.sh("cat note.txt").stdout.data == word


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    folder.chmod(0o777)
    target = folder / "note.txt"
    target.write_bytes(b"untouched")
    target.chmod(0o666)
    return target


def test_a_link_in_place_of_the_file_is_not_followed(box: Any, outside: Path) -> None:
    link = box.copy / "note.txt"
    link.unlink()
    link.symlink_to(outside)
    with suppress(IsolationError):
        box.rewrite("note.txt", b"changed")
        assert not link.is_symlink()
        assert link.read_bytes() == b"changed"
    assert outside.read_bytes() == b"untouched"
    assert stat.S_IMODE(outside.stat().st_mode) == 0o666


def test_a_link_in_place_of_the_folder_reaches_nothing_outside(box: Any, outside: Path) -> None:
    (box.copy / "below" / "deep.txt").unlink()
    (box.copy / "below").rmdir()
    (box.copy / "below").symlink_to(outside.parent)
    with suppress(IsolationError):
        box.rewrite("below/note.txt", b"changed")
    assert outside.read_bytes() == b"untouched"
    assert [path.name for path in outside.parent.iterdir()] == ["note.txt"]


def test_a_link_that_a_command_put_there_is_not_followed(box: Any, outside: Path) -> None:
    box.sh(f"rm note.txt && ln -s {outside} note.txt && rm -r below && ln -s {outside.parent} below")
    assert (box.copy / "note.txt").is_symlink()
    for path in ("note.txt", "below/note.txt"):
        with suppress(IsolationError):
            box.rewrite(path, b"changed")
    assert outside.read_bytes() == b"untouched"


def test_a_missing_folder_is_an_error(shared: Any) -> None:
    with pytest.raises(IsolationError):
        shared.rewrite("absent/note.txt", b"x")
    assert not (shared.copy / "absent").exists()


def test_a_folder_in_place_of_the_file_is_an_error(box: Any) -> None:
    with pytest.raises(IsolationError):
        box.rewrite("below", b"x")
    assert (box.copy / "below" / "deep.txt").read_bytes() == b"deep\n"


def test_a_pipe_in_place_of_the_file_blocks_nothing(box: Any) -> None:
    (box.copy / "note.txt").unlink()
    os.mkfifo(box.copy / "note.txt", 0o666)
    started = time.monotonic()
    with suppress(IsolationError):
        box.rewrite("note.txt", b"x")
    assert time.monotonic() - started < 15
    assert box.sh("echo still works").stdout.data == b"still works\n"
