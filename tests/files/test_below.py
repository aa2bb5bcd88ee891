from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from firsthand.files import FileRefusedError, FilesBelow, files_below
from firsthand.files.below import SteppingReader

LIMIT = 1 << 20


@pytest.fixture(params=["descriptors", "steps"])
def read(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], object]:
    """The same questions to both ways of reading: the answer, or the reason of the refusal."""

    def ask(path: str) -> object:
        def answer(below: FilesBelow) -> object:
            try:
                content = below.read(path, LIMIT)
            except FileRefusedError as error:
                return error.reason
            return None if content is None else (content.data, content.mode, content.links)

        if request.param == "steps":
            return answer(SteppingReader(tmp_path))
        with files_below(tmp_path) as below:
            return answer(below)

    return ask


def test_both_ways_give_the_same_answers(tmp_path: Path, read: Callable[[str], object]) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "e" / "f").write_bytes(b"\xff\r\n")
    (tmp_path / "d" / "e" / "f").chmod(0o640)
    (tmp_path / "link").symlink_to("d")
    (tmp_path / "d" / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "fifo")
    assert read("d/e/f") == (b"\xff\r\n", 0o640, 1)
    assert read("d/e/absent") is None
    assert read("absent/e/f") is None
    assert read("d/absent/e/f") is None
    assert read("link/e/f") == "symlink"
    assert read("d/dangling") == "dangling-link"
    assert read("d/dangling/f") in ("dangling-link", "symlink")
    assert read("d/e/f/g") == "not-a-directory"
    assert read("d/e") == "directory"
    assert read("fifo") == "fifo"
    assert read("../outside") == "unreadable"


def test_a_root_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"")
    for path in (tmp_path / "f", tmp_path / "absent"):
        with pytest.raises(FileRefusedError):
            SteppingReader(path)
        with pytest.raises(FileRefusedError), files_below(path):
            pytest.fail("opened")


def test_a_folder_swapped_between_two_looks_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("d", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_bytes(name.encode())
    really_open = os.open

    def swap_then_open(path: Path, flags: int) -> int:
        monkeypatch.undo()
        (tmp_path / "d").rename(tmp_path / "gone")
        (tmp_path / "other").rename(tmp_path / "d")
        return really_open(path, flags)

    monkeypatch.setattr("firsthand.files.reading.os.open", swap_then_open)
    with pytest.raises(FileRefusedError) as caught:
        SteppingReader(tmp_path).read("d/f", LIMIT)
    assert caught.value.reason == "changed-during-read"


def test_where_there_are_no_descriptors_the_steps_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "supports_dir_fd", set())
    with files_below(tmp_path) as below:
        assert isinstance(below, SteppingReader)
