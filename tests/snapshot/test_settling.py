"""Whatever a command does to its copy: settling either finds it exactly as frozen, or says what differs."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from files.ordinary import NOBODY, as_ordinary_user
from firsthand.files import RemovalError, remove_path
from firsthand.snapshot import CopyDriftError, Difference, WorkingCopy, freeze
from snapshot.conftest import Define

FILES = {"a": b"aa", "d/b": b"bb", "d/e/c": b"cc"}
MISSING = ["m", "d/n", "x/y/z"]
NAMES = ["a", "b", "c", "d", "e", "m", "n", "x", "y", "z", "other"]
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
DEEDS = st.lists(
    st.tuples(
        st.sampled_from(["write", "append", "mkdir", "symlink", "hardlink", "fifo", "remove", "rename", "chmod"]),
        PATHS,
        PATHS,
        st.sampled_from([0o000, 0o400, 0o600, 0o644, 0o700, 0o755, 0o1777]),
    ),
    max_size=8,
)


def do(root: Path, deed: str, one: str, other: str, mode: int) -> None:
    path, second = root / one, root / other
    if deed in ("write", "append"):
        # Without waiting: a pipe that an earlier deed made has no reader.
        how = os.O_TRUNC if deed == "write" else os.O_APPEND
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | how, 0o644)
        os.write(fd, b"written")
        os.close(fd)
    elif deed == "mkdir":
        path.mkdir()
    elif deed == "symlink":
        path.symlink_to(second)
    elif deed == "hardlink":
        os.link(path, second, follow_symlinks=False)
    elif deed == "fifo":
        os.mkfifo(path)
    elif deed == "remove":
        remove_path(path)
    elif deed == "rename":
        path.rename(second)
    else:
        path.chmod(mode)


def state(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every entry below a root: its kind and mode, its links, its bytes."""
    found = {}
    for path in sorted(root.rglob("*")):
        entry = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(entry.st_mode) else b""
        links = entry.st_nlink if stat.S_ISREG(entry.st_mode) else 0
        found[str(path.relative_to(root))] = (entry.st_mode, links, data)
    return found


def settle(copy: WorkingCopy) -> tuple[Difference, ...] | None:
    """What differs after settling, never empty; None when nothing does."""
    try:
        copy.settle()
    except CopyDriftError as error:
        return error.differences or (Difference("", "kind"),)
    return None


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(deeds=DEEDS)
def test_a_settled_copy_is_the_frozen_one_and_anything_else_is_drift(
    source: Path, define: Define, place: Path, deeds: list[tuple[str, str, str, int]]
) -> None:
    for name, data in FILES.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(data)
    try:
        snapshot = freeze(define([*FILES, *MISSING]), place)
        copy = snapshot.working_copy(place / "copy")
        frozen = state(copy.path)
        for deed in deeds:
            try:
                # Confined to the copy: a link that an earlier deed made must not lead the test itself astray.
                if Path(os.path.realpath((copy.path / deed[1]).parent)).is_relative_to(copy.path):
                    do(copy.path, *deed)
            except (OSError, RemovalError):
                continue
        differences = settle(copy)
        if differences is None:
            assert state(copy.path) == frozen
            assert settle(copy) is None
        else:
            assert {each.path for each in differences} <= {*FILES, *MISSING}
            if all(each.kind in ("bytes", "size", "mode", "links", "missing") for each in differences):
                # Only registered files and the folders on the way to them are left.
                assert {str(path.relative_to(copy.path)) for path in copy.path.rglob("*")} <= set(frozen)
        snapshot.check_pristine()
        copy.remove()
    finally:
        remove_path(place)
        remove_path(source)
        source.mkdir()


def test_root_settles_what_another_user_left(source: Path, define: Define, place: Path) -> None:
    """As root, commands run as a user of their own, who owns the copy meanwhile."""
    if os.geteuid() != 0:
        pytest.skip("only root runs commands as another user")
    (source / "d").mkdir()
    (source / "d" / "b").write_bytes(b"bb")
    copy = freeze(define(["d/b", "m"]), place).working_copy(place / "copy")
    for path in (copy.path, copy.path / "d", copy.path / "d" / "b"):
        os.chown(path, NOBODY, NOBODY)
    frozen = state(copy.path)
    root_fd = os.open(copy.path, os.O_RDONLY)

    def command() -> None:
        # Its parents are shut for that user, as in the sandbox it is only ever shown the copy itself.
        os.fchdir(root_fd)
        Path("d/left").mkdir()
        Path("d/left/file").write_bytes(b"")
        Path("d/left").chmod(0)
        Path("link").symlink_to("/etc")
        Path("d").chmod(0)

    as_ordinary_user(command)
    os.close(root_fd)
    copy.settle()
    assert state(copy.path) == frozen

    (copy.path / "d" / "b").unlink()
    (copy.path / "d" / "b").symlink_to("/etc/shadow")
    with pytest.raises(CopyDriftError, match="d/b: kind"):
        copy.settle()
