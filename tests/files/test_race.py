"""Swapping a folder or the file itself for a link while it is read: no outside byte, in 10,000 rounds each."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from files.flipping import INSIDE, OUTSIDE, flipping
from firsthand.files import FileRefusedError, open_folder, read_registered

ROUNDS = 10_000
CONTROL_ROUNDS = 200_000


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    """A root `ws/` with `ws/dir/f`, an outside folder with `f`, and the links `ws/evil-dir` and `ws/dir/evil-f`."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(OUTSIDE)
    folder = tmp_path / "ws" / "dir"
    folder.mkdir(parents=True)
    (folder / "f").write_bytes(INSIDE)
    (folder / "evil-f").symlink_to(outside / "f")
    (tmp_path / "ws" / "evil-dir").symlink_to(outside)
    return tmp_path / "ws"


def flipped(stage: Path, what: str) -> tuple[Path, Path]:
    if what == "folder":
        return stage / "dir", stage / "evil-dir"
    return stage / "dir" / "f", stage / "dir" / "evil-f"


def read_once(root_fd: int) -> str:
    """One read: what came of it. Fails on any byte that is not inside's."""
    try:
        content = read_registered(root_fd, "dir/f", 1 << 20)
    except FileRefusedError as error:
        return error.reason
    if content is None:
        return "missing"
    assert content.data == INSIDE
    return "read"


@pytest.mark.parametrize("what", ["folder", "leaf"])
def test_no_outside_byte_enters(stage: Path, what: str) -> None:
    root_fd = open_folder(stage)
    try:
        with flipping(*flipped(stage, what)):
            outcomes = Counter(read_once(root_fd) for _ in range(ROUNDS))
    finally:
        os.close(root_fd)
    # The race was live: both sides were met, and each refusal says what it met.
    assert outcomes["read"] > 0
    assert outcomes["symlink"] + outcomes["changed-during-read"] > 0
    assert set(outcomes) <= {"read", "symlink", "changed-during-read", "missing"}


def open_plainly(stage: Path) -> bytes:
    return (stage / "dir" / "f").read_bytes()


def open_without_following_the_leaf(stage: Path) -> bytes:
    fd = os.open(stage / "dir" / "f", os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(fd, "rb") as stream:
        return stream.read()


def check_then_open(stage: Path) -> bytes:
    path = stage / "dir" / "f"
    return path.read_bytes() if path.resolve().is_relative_to(stage) else b""


@pytest.mark.parametrize(
    ("what", "naive"),
    [
        ("folder", open_plainly),
        ("leaf", open_plainly),
        ("folder", open_without_following_the_leaf),
        ("folder", check_then_open),
        ("leaf", check_then_open),
    ],
)
def test_the_attack_works_on_a_naive_reader(stage: Path, what: str, naive: Callable[[Path], bytes]) -> None:
    with flipping(*flipped(stage, what)):
        for _ in range(CONTROL_ROUNDS):
            try:
                if naive(stage) == OUTSIDE:
                    return
            except OSError:
                continue
    pytest.fail("the attack never worked, so surviving it proves nothing")


def test_a_file_that_grows_is_never_half_read(tmp_path: Path) -> None:
    growing = tmp_path / "f"
    growing.write_bytes(b"")
    stop = threading.Event()

    def append() -> None:
        with growing.open("ab", buffering=0) as stream:
            while not stop.is_set():
                stream.write(b"line\n")
                if stream.tell() > 500_000:
                    stream.truncate(0)

    writer = threading.Thread(target=append)
    root_fd = open_folder(tmp_path)
    outcomes: Counter[str] = Counter()
    try:
        writer.start()
        while outcomes["changed-during-read"] < 50 and sum(outcomes.values()) < 100_000:
            try:
                content = read_registered(root_fd, "f", 1 << 20)
            except FileRefusedError as error:
                outcomes[error.reason] += 1
            else:
                assert content is not None
                outcomes["read"] += 1
                assert len(content.data) % 5 == 0
    finally:
        stop.set()
        writer.join()
        os.close(root_fd)
    assert outcomes["changed-during-read"] > 0
    assert set(outcomes) <= {"read", "changed-during-read"}
