from __future__ import annotations

import os
import resource
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from files.ordinary import as_ordinary_user
from firsthand.files import RemovalError, remove_entry, remove_path
from firsthand.files.removal import DEEPEST_OPEN


def deepen(top: Path, levels: int, mode: int = 0o755) -> None:
    """A chain of folders deeper than any path can name, each with a file, each then given a mode."""
    fds = [os.open(top, os.O_RDONLY)]
    for level in range(levels):
        name = f"level-{level:04d}-with-a-long-name"
        os.mkdir(name, dir_fd=fds[-1])
        below = os.open(name, os.O_RDONLY, dir_fd=fds[-1])
        os.close(os.open("file", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=below))
        fds.append(below)
    for fd in reversed(fds[1:]):
        os.fchmod(fd, mode)
    for fd in fds:
        os.close(fd)


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """Something outside that must stay as it is: a folder and a file, with modes of their own."""
    outside = tmp_path / "canary"
    outside.mkdir()
    (outside / "kept").write_bytes(b"kept")
    (outside / "kept").chmod(0o440)
    outside.chmod(0o550)
    return outside


def is_untouched(canary: Path) -> bool:
    modes = [stat.S_IMODE(path.lstat().st_mode) for path in (canary, canary / "kept")]
    return modes == [0o550, 0o440] and (canary / "kept").read_bytes() == b"kept"


def test_everything_goes_and_nothing_outside_does(tmp_path: Path, canary: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "file").write_bytes(b"")
    (tree / "a" / "b" / "to-folder").symlink_to(canary)
    (tree / "to-file").symlink_to(canary / "kept")
    (tree / "dangling").symlink_to("nowhere")
    (tree / "loop").symlink_to("loop")
    os.link(canary / "kept", tree / "hard")
    os.mkfifo(tree / "fifo")
    here = Path.cwd()
    os.chdir(tree)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
    os.chdir(here)
    (tree / "\udcff\n").write_bytes(b"")
    remove_path(tree)
    assert not tree.exists()
    assert is_untouched(canary)


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path: Path, canary: Path) -> None:
    (tmp_path / "link").symlink_to(canary)
    remove_path(tmp_path / "link")
    assert not (tmp_path / "link").is_symlink()
    assert is_untouched(canary)


def test_a_file_and_nothing_at_all_are_fine(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"")
    remove_path(tmp_path / "f")
    remove_path(tmp_path / "f")
    remove_path(tmp_path / "absent" / "f")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "f").write_bytes(b"")
    remove_path(tmp_path / "f" / "below")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize("mode", [0o755, 0o000, 0o500])
def test_an_ordinary_user_removes_a_chain_of_700_shut_folders(users_folder: Path, mode: int) -> None:
    def work() -> None:
        tree = users_folder / "tree"
        tree.mkdir()
        deepen(tree, 700, mode)
        before = len(os.listdir("/dev/fd"))
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        # Descriptors are bounded, however deep: what one level each would need is not there.
        resource.setrlimit(resource.RLIMIT_NOFILE, (before + DEEPEST_OPEN + 8, hard))
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(200)
        try:
            remove_path(tree)
        finally:
            sys.setrecursionlimit(limit)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert not tree.exists()
        assert len(os.listdir("/dev/fd")) == before

    as_ordinary_user(work)


def test_an_ordinary_user_removes_what_a_hostile_check_leaves(users_folder: Path) -> None:
    def work() -> None:
        tree = users_folder / "tree"
        (tree / "d" / "e").mkdir(parents=True)
        (tree / "d" / "e" / "f").write_bytes(b"")
        (tree / "d" / "e" / "f").chmod(0)
        (tree / "d" / "e").chmod(0o500)
        (tree / "d").chmod(0)
        for number in range(3):
            wide = tree / f"wide-{number}"
            wide.mkdir()
            for below in range(50):
                (wide / f"{below}").mkdir()
                (wide / f"{below}" / "file").write_bytes(b"")
                (wide / f"{below}").chmod(0)
            wide.chmod(0o300)
        tree.chmod(0)
        remove_path(tree)
        assert not tree.exists()

    as_ordinary_user(work)


def test_a_naive_removal_fails_on_the_same_tree(users_folder: Path) -> None:
    """The control: an ordinary `rm -rf` leaves the shut folders in place."""

    def work() -> None:
        tree = users_folder / "tree"
        (tree / "d" / "e").mkdir(parents=True)
        (tree / "d" / "e" / "f").write_bytes(b"")
        (tree / "d").chmod(0)
        subprocess.run(["/bin/rm", "-rf", str(tree)], check=False, capture_output=True)
        assert tree.exists()
        remove_path(tree)

    as_ordinary_user(work)


def test_a_moved_chain_does_not_meet_names_at_the_top(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    deepen(tree, DEEPEST_OPEN * 3)
    for number in range(5):
        (tree / f"other-{number}").mkdir()
        deepen(tree / f"other-{number}", DEEPEST_OPEN + 5)
    remove_path(tree)
    assert not tree.exists()


@pytest.mark.parametrize("kind", ["other-device", "same-device"])
@pytest.mark.parametrize("depth", [0, 1, DEEPEST_OPEN - 1, DEEPEST_OPEN, DEEPEST_OPEN + 3])
def test_a_mount_is_left_alone_and_named(tmp_path: Path, kind: str, depth: int) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    outside = tmp_path / "outside"
    outside.mkdir()
    tree = tmp_path / "tree"
    here = tree.joinpath(*["d"] * depth, "here")
    here.mkdir(parents=True)
    how = ["-t", "tmpfs", "none"] if kind == "other-device" else ["--bind", str(outside)]
    if subprocess.run(["/bin/mount", *how, str(here)], check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting is not allowed here")
    mounts = str(tmp_path)
    try:
        (here / "kept").write_bytes(b"kept")
        with pytest.raises(RemovalError, match="mounted"):
            remove_path(tree)
        # Deep folders may have been moved up by then, with the mount in them.
        assert [path.read_bytes() for path in tree.rglob("kept")] == [b"kept"]
    finally:
        for line in Path("/proc/self/mounts").read_text("utf-8").splitlines():
            if line.split()[1].startswith(mounts):
                subprocess.run(["/bin/umount", line.split()[1]], check=True)


def test_a_folder_swapped_for_a_link_meanwhile_leads_nowhere(tmp_path: Path, canary: Path) -> None:
    """A process that still runs swaps folders of the tree for links to the outside while it is removed."""
    stop = threading.Event()

    def swap(tree: Path) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            try:
                (tree / "d").rename(tree / f"gone-{number}")
                (tree / "d").symlink_to(canary)
                (tree / "d").unlink()
                (tree / f"gone-{number}").rename(tree / "d")
            except OSError:
                continue

    for number in range(40):
        tree = tmp_path / f"tree-{number}"
        (tree / "d" / "e").mkdir(parents=True)
        for below in range(20):
            (tree / "d" / "e" / f"{below}").mkdir()
        stop.clear()
        attacker = threading.Thread(target=swap, args=(tree,))
        attacker.start()
        try:
            remove_path(tree)
        except RemovalError:
            pass
        finally:
            stop.set()
            attacker.join()
        assert is_untouched(canary)


def test_something_that_keeps_writing_ends_in_a_named_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "tree"
    (tree / "d").mkdir(parents=True)
    really_rmdir = os.rmdir

    def rmdir(name: bytes, *, dir_fd: int) -> None:
        # A writer that always wins: a file appears just before the folder would go.
        with os.fdopen(os.open(name + b"/late", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=dir_fd), "wb"):
            really_rmdir(name, dir_fd=dir_fd)

    monkeypatch.setattr("firsthand.files.removal.os.rmdir", rmdir)
    with pytest.raises(RemovalError, match="keeps writing"):
        remove_path(tree)


def test_one_entry_of_an_open_folder_goes_alone(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "kept").mkdir()
    fd = os.open(tmp_path, os.O_RDONLY)
    remove_entry(fd, b"a")
    remove_entry(fd, b"absent")
    os.close(fd)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
