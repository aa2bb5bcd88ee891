from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from files.ordinary import as_ordinary_user, ground
from firsthand.errors import StateError
from firsthand.files import remove_path
from firsthand.snapshot import Content, CopyDriftError, Snapshot, WorkingCopy, freeze
from snapshot.conftest import Define

REGISTERED = ["a.py", "src/value.py", "src/deep/other.py", "late.py", "late/er/new.py", "src/late/new.py"]


@pytest.fixture
def snapshot(source: Path, define: Define, place: Path) -> Snapshot:
    (source / "src" / "deep").mkdir(parents=True)
    for number, name in enumerate(REGISTERED[:3]):
        (source / name).write_bytes(name.encode() * 10)
        (source / name).chmod((0o644, 0o755, 0o600)[number])
    return freeze(define(REGISTERED), place)


@pytest.fixture
def copy(snapshot: Snapshot, place: Path) -> WorkingCopy:
    return snapshot.working_copy(place / "copy")


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    outside = tmp_path / "canary"
    outside.mkdir()
    (outside / "kept").write_bytes(b"kept")
    (outside / "kept").chmod(0o440)
    outside.chmod(0o550)
    return outside


def is_untouched(canary: Path) -> bool:
    modes = [stat.S_IMODE(path.lstat().st_mode) for path in (canary, canary / "kept")]
    return modes == [0o550, 0o440] and [path.name for path in canary.iterdir()] == ["kept"]


def holds(copy: WorkingCopy) -> set[str]:
    return {str(path.relative_to(copy.path)) for path in copy.path.rglob("*")}


CLEAN = {"a.py", "src", "src/value.py", "src/deep", "src/deep/other.py"}


def drift(copy: WorkingCopy, expected: dict[str, Content] | None = None) -> list[tuple[str, str]]:
    with pytest.raises(CopyDriftError) as caught:
        copy.settle(expected)
    assert caught.value.code == "review_verification_copy_drift"
    assert caught.value.exit_status == 1
    return [(each.path, each.kind) for each in caught.value.differences]


def test_an_untouched_copy_is_settled(copy: WorkingCopy) -> None:
    assert holds(copy) == CLEAN
    copy.settle()
    copy.settle()
    assert holds(copy) == CLEAN


def leave_everywhere(root: Path, canary: Path) -> None:
    for folder in (root, root / "src", root / "src" / "deep"):
        (folder / "left").write_bytes(b"")
        (folder / "left-dir" / "more").mkdir(parents=True)
        (folder / "left-dir" / "more" / "file").write_bytes(b"")
        (folder / "__pycache__").mkdir()
        (folder / "__pycache__" / "value.cpython-311.pyc").write_bytes(b"stale")
        (folder / "to-outside").symlink_to(canary)
        (folder / "to-file").symlink_to(canary / "kept")
        (folder / "dangling").symlink_to("nowhere")
        os.mkfifo(folder / "fifo")
        (folder / "new\nline\udcff").write_bytes(b"")
    os.link(canary / "kept", root / "hard")
    os.link(root / "a.py", root / "src" / "second-name")
    here = Path.cwd()
    os.chdir(root)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
    os.chdir(here)


def test_every_leftover_goes_and_nothing_outside_does(copy: WorkingCopy, canary: Path) -> None:
    leave_everywhere(copy.path, canary)
    copy.settle()
    assert holds(copy) == CLEAN
    assert is_untouched(canary)


def test_folders_that_only_lead_to_missing_files_go(copy: WorkingCopy, canary: Path) -> None:
    (copy.path / "late" / "er").mkdir(parents=True)
    (copy.path / "late" / "er" / "left").write_bytes(b"")
    (copy.path / "src" / "late").symlink_to(canary)
    copy.settle()
    assert holds(copy) == CLEAN
    assert is_untouched(canary)


def test_a_registered_missing_file_that_appears_is_drift(copy: WorkingCopy) -> None:
    (copy.path / "late" / "er").mkdir(parents=True)
    (copy.path / "late" / "er" / "new.py").write_bytes(b"")
    assert drift(copy) == [("late/er/new.py", "appeared")]
    shutil.rmtree(copy.path / "late")
    (copy.path / "late.py").symlink_to("nowhere")
    assert drift(copy) == [("late.py", "appeared")]
    (copy.path / "late.py").unlink()
    (copy.path / "late.py").mkdir()
    (copy.path / "src" / "late").mkdir()
    (copy.path / "src" / "late" / "new.py").write_bytes(b"")
    assert drift(copy) == [("late.py", "appeared"), ("src/late/new.py", "appeared")]


def in_place(root: Path) -> None:
    (root / "a.py").write_bytes(b"A.py" + (root / "a.py").read_bytes()[4:])


def grow(root: Path) -> None:
    with (root / "a.py").open("ab") as stream:
        stream.write(b"more")


def replace_by_link_to_equal(root: Path) -> None:
    (root / "a.py").rename(root / "moved")
    (root / "a.py").symlink_to("moved")


def replace_by_hard_link_to_equal(root: Path) -> None:
    (root / "src" / "value.py").unlink()
    os.link(root / "a.py", root / "src" / "value.py")


def replace_by_folder(root: Path) -> None:
    (root / "a.py").unlink()
    (root / "a.py").mkdir()


def replace_by_fifo(root: Path) -> None:
    (root / "a.py").unlink()
    os.mkfifo(root / "a.py")


def replace_by_device_link(root: Path) -> None:
    (root / "a.py").unlink()
    (root / "a.py").symlink_to("/dev/zero")


def sparse_giant(root: Path) -> None:
    os.truncate(root / "a.py", 10 << 30)


def replace_folder_by_link(root: Path) -> None:
    (root / "src" / "deep").rename(root / "moved")
    (root / "src" / "deep").symlink_to(root / "moved")


def replace_folder_by_file(root: Path) -> None:
    shutil.rmtree(root / "src" / "deep")
    (root / "src" / "deep").write_bytes(b"")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (in_place, [("a.py", "bytes")]),
        (grow, [("a.py", "size")]),
        (lambda root: os.truncate(root / "a.py", 0), [("a.py", "size")]),
        (sparse_giant, [("a.py", "size")]),
        (lambda root: (root / "a.py").unlink(), [("a.py", "missing")]),
        (lambda root: (root / "a.py").chmod(0o600), [("a.py", "mode")]),
        (lambda root: (root / "a.py").chmod(0o4644), [("a.py", "mode")]),
        (lambda root: (root / "a.py").chmod(0), [("a.py", "mode")]),
        (replace_by_link_to_equal, [("a.py", "kind")]),
        (replace_by_hard_link_to_equal, [("a.py", "links"), ("src/value.py", "mode")]),
        (replace_by_folder, [("a.py", "kind")]),
        (replace_by_fifo, [("a.py", "kind")]),
        (replace_by_device_link, [("a.py", "kind")]),
        (replace_folder_by_link, [("src/deep/other.py", "kind")]),
        (replace_folder_by_file, [("src/deep/other.py", "kind")]),
        (lambda root: shutil.rmtree(root / "src"), [("src/value.py", "missing"), ("src/deep/other.py", "missing")]),
    ],
)
def test_each_kind_of_drift_is_named(
    copy: WorkingCopy, change: Callable[[Path], object], found: list[tuple[str, str]]
) -> None:
    change(copy.path)
    assert drift(copy) == found


def test_a_folder_replaced_by_a_link_to_outside_touches_nothing(copy: WorkingCopy, canary: Path) -> None:
    shutil.rmtree(copy.path / "src")
    (copy.path / "src").symlink_to(canary)
    assert drift(copy) == [("src/value.py", "kind"), ("src/deep/other.py", "kind")]
    assert is_untouched(canary)


def test_folder_modes_are_mended(copy: WorkingCopy) -> None:
    for name, mode in [("src", 0o777), ("src/deep", 0o1000), (".", 0o755)]:
        (copy.path / name).chmod(mode)
    copy.settle()
    modes = [stat.S_IMODE((copy.path / name).stat().st_mode) for name in (".", "src", "src/deep")]
    assert modes == [0o700, 0o755, 0o755]


def test_another_folder_in_the_copys_place_is_drift(copy: WorkingCopy) -> None:
    moved = copy.path.with_name("moved")
    copy.path.rename(moved)
    shutil.copytree(moved, copy.path)
    copy.path.chmod(0o700)
    assert drift(copy) == [(".", "kind")]
    shutil.rmtree(copy.path)
    copy.path.symlink_to(moved)
    assert drift(copy) == [(".", "kind")]
    copy.path.unlink()
    assert drift(copy) == [(".", "kind")]


def test_a_mutation_may_stand_where_it_is_expected(copy: WorkingCopy) -> None:
    mutated = (copy.path / "src/value.py").read_bytes() + b"# more"
    expected = {"src/value.py": Content.of(mutated, 0o755)}
    assert drift(copy, expected) == [("src/value.py", "size")]
    (copy.path / "src/value.py").write_bytes(mutated)
    copy.settle(expected)
    assert drift(copy) == [("src/value.py", "size")]
    (copy.path / "src/value.py").chmod(0o644)
    assert drift(copy, expected) == [("src/value.py", "mode")]
    for path in ("unregistered", "late.py"):
        with pytest.raises(KeyError):
            copy.settle({path: Content.of(b"", 0o644)})


def test_a_copy_goes_whole(copy: WorkingCopy, canary: Path) -> None:
    leave_everywhere(copy.path, canary)
    copy.remove()
    copy.remove()
    assert not copy.path.exists()
    assert is_untouched(canary)


def test_copies_are_independent_of_each_other(snapshot: Snapshot, place: Path) -> None:
    one, two = (snapshot.working_copy(place / name) for name in ("one", "two"))
    (one.path / "a.py").write_bytes(b"changed")
    two.settle()
    snapshot.check_pristine()
    assert drift(one) == [("a.py", "size")]


def test_a_copys_place_is_outside_source_and_pristine_and_free(
    snapshot: Snapshot, source: Path, place: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(source)
    for path in (source / "copy", tmp_path / "link" / "copy", snapshot.pristine / "copy", snapshot.pristine):
        with pytest.raises(StateError):
            snapshot.working_copy(path)
    (place / "taken").mkdir()
    with pytest.raises(StateError):
        snapshot.working_copy(place / "taken")
    snapshot.check_pristine()


def deepen(top: Path, levels: int, mode: int) -> None:
    fds = [os.open(top, os.O_RDONLY)]
    for _ in range(levels):
        os.mkdir("a-level-of-the-chain", dir_fd=fds[-1])
        fds.append(os.open("a-level-of-the-chain", os.O_RDONLY, dir_fd=fds[-1]))
    for fd in reversed(fds[1:]):
        os.fchmod(fd, mode)
    for fd in fds:
        os.close(fd)


def test_an_ordinary_user_settles_what_a_hostile_check_left(define: Define, source: Path) -> None:
    (source / "src" / "deep").mkdir(parents=True)
    for name in REGISTERED[:3]:
        (source / name).write_bytes(b"x")
    definition = define(REGISTERED)

    with ground() as users:
        # The definition names a source below pytest's folder; the user's own is what it freezes.
        shutil.copytree(source, users / "source")
        if os.geteuid() == 0:
            for path in (users / "source", *(users / "source").rglob("*")):
                os.chown(path, 65534, 65534)
        own = type(definition)(definition.document, users / "source", definition.canonical, definition.fingerprint)

        def work() -> None:
            copy = freeze(own, users / "copies").working_copy(users / "copies" / "copy")
            for folder in (copy.path, copy.path / "src", copy.path / "src" / "deep"):
                (folder / "d" / "e").mkdir(parents=True)
                (folder / "d" / "e" / "f").write_bytes(b"")
                (folder / "d" / "e").chmod(0o500)
                (folder / "d").chmod(0)
            deepen(copy.path / "src", 650, 0)
            (copy.path / "src" / "deep").chmod(0)
            (copy.path / "src").chmod(0)
            copy.path.chmod(0)
            copy.settle()
            assert holds(copy) == CLEAN
            (copy.path / "a.py").chmod(0)
            assert drift(copy) == [("a.py", "mode")]
            copy.path.chmod(0)
            copy.remove()
            assert not copy.path.exists()

        as_ordinary_user(work)
        remove_path(users / "copies")
