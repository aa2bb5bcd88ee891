from __future__ import annotations

import os
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from files.ordinary import as_ordinary_user
from firsthand.files import FILE_REASONS, Cursor, FileRefusedError, open_folder, read_path, read_registered
from firsthand.files.reading import read_open_file

LIMIT = 1 << 20


@pytest.fixture
def root_fd(tmp_path: Path) -> Iterator[int]:
    fd = open_folder(tmp_path)
    yield fd
    os.close(fd)


def refusal(root_fd: int, path: str, limit_bytes: int = LIMIT) -> FileRefusedError:
    begun = time.monotonic()
    with pytest.raises(FileRefusedError) as caught:
        read_registered(root_fd, path, limit_bytes)
    assert time.monotonic() - begun < 1
    assert caught.value.path.split("/")[0] == path.split("/", maxsplit=1)[0]
    return caught.value


def make_fifo(folder: Path) -> None:
    os.mkfifo(folder / "it")


def make_socket(folder: Path) -> None:
    here = Path.cwd()
    os.chdir(folder)  # a socket's whole path has 107 bytes at most
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("it")
    finally:
        os.chdir(here)


def make_dangling(folder: Path) -> None:
    (folder / "it").symlink_to(folder / "nowhere")


def make_loop(folder: Path) -> None:
    (folder / "it").symlink_to("it")


def make_link(folder: Path) -> None:
    (folder / "real").write_bytes(b"x")
    (folder / "it").symlink_to("real")


def make_device_link(folder: Path) -> None:
    (folder / "it").symlink_to("/dev/zero")


def make_folder(folder: Path) -> None:
    (folder / "it").mkdir()


def make_set_user_id(folder: Path) -> None:
    (folder / "it").write_bytes(b"x")
    (folder / "it").chmod(0o4755)


def make_set_group_id(folder: Path) -> None:
    (folder / "it").write_bytes(b"x")
    (folder / "it").chmod(0o2755)


LEAVES: list[tuple[Callable[[Path], None], str]] = [
    (make_fifo, "fifo"),
    (make_socket, "socket"),
    (make_dangling, "dangling-link"),
    (make_loop, "link-loop"),
    (make_link, "symlink"),
    (make_device_link, "symlink"),
    (make_folder, "directory"),
    (make_set_user_id, "set-id"),
    (make_set_group_id, "set-id"),
]


@pytest.mark.parametrize(("make", "reason"), LEAVES)
def test_what_is_no_plain_file_is_refused_by_its_own_reason(
    tmp_path: Path, root_fd: int, make: Callable[[Path], None], reason: str
) -> None:
    make(tmp_path)
    assert refusal(root_fd, "it").reason == reason
    (tmp_path / "deep" / "er").mkdir(parents=True)
    make(tmp_path / "deep" / "er")
    assert refusal(root_fd, "deep/er/it").reason == reason


def test_devices_are_refused_before_they_are_opened() -> None:
    dev_fd = open_folder(Path("/dev"))
    try:
        assert refusal(dev_fd, "zero").reason == "device"
        assert refusal(dev_fd, "full").reason == "device"
    finally:
        os.close(dev_fd)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (make_fifo, "not-a-directory"),
        (make_dangling, "dangling-link"),
        (make_loop, "link-loop"),
        (make_link, "symlink"),
        (make_set_user_id, "not-a-directory"),
    ],
)
def test_a_parent_that_is_no_folder_is_never_missing(
    tmp_path: Path, root_fd: int, make: Callable[[Path], None], reason: str
) -> None:
    make(tmp_path)
    assert refusal(root_fd, "it/f").reason == reason
    assert refusal(root_fd, "it/deeper/f").reason == reason


def test_a_link_to_a_folder_is_refused_on_the_way(tmp_path: Path, root_fd: int) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").write_bytes(b"x")
    (tmp_path / "it").symlink_to("real")
    assert refusal(root_fd, "it/f").reason == "symlink"


def test_only_true_absence_is_missing(tmp_path: Path, root_fd: int) -> None:
    (tmp_path / "d").mkdir()
    for path in ("absent", "d/absent", "absent/absent", "d/e/f/g"):
        assert read_registered(root_fd, path, LIMIT) is None


def test_a_shut_file_and_a_shut_folder_are_refused(users_folder: Path) -> None:
    (users_folder / "d").mkdir()
    (users_folder / "d" / "f").write_bytes(b"x")
    (users_folder / "f").write_bytes(b"x")
    (users_folder / "f").chmod(0)
    (users_folder / "d").chmod(0)

    def work() -> None:
        fd = open_folder(users_folder)
        assert refusal(fd, "f").reason == "permission"
        assert refusal(fd, "d/f").reason == "permission"

    as_ordinary_user(work)
    (users_folder / "d").chmod(0o700)


def test_a_folder_that_may_be_searched_but_not_listed_is_passed(users_folder: Path) -> None:
    (users_folder / "d").mkdir()
    (users_folder / "d" / "f").write_bytes(b"x")
    (users_folder / "d").chmod(0o111)

    def work() -> None:
        content = read_registered(open_folder(users_folder), "d/f", LIMIT)
        assert content is not None
        assert content.data == b"x"

    if sys.platform != "linux":
        pytest.skip("no O_PATH here")
    as_ordinary_user(work)
    (users_folder / "d").chmod(0o700)


def test_the_limit_is_exact(tmp_path: Path, root_fd: int) -> None:
    (tmp_path / "f").write_bytes(b"x" * 100)
    content = read_registered(root_fd, "f", 100)
    assert content is not None
    assert len(content.data) == 100
    assert refusal(root_fd, "f", 99).reason == "too-large"


def test_a_sparse_giant_is_refused_without_reading(tmp_path: Path, root_fd: int) -> None:
    with (tmp_path / "f").open("wb") as stream:
        stream.truncate(10 << 30)
    assert refusal(root_fd, "f").reason == "too-large"


def test_names_too_long_for_the_system_have_their_reason(root_fd: int) -> None:
    assert refusal(root_fd, "n" * 300).reason == "name-too-long"
    assert refusal(root_fd, "n" * 300 + "/f").reason == "name-too-long"


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../f", "a/../b", "./f", "a//b", "a/", "a\0b", "\udc80"])
def test_a_path_that_could_leave_the_root_is_never_opened(root_fd: int, path: str) -> None:
    with pytest.raises(FileRefusedError):
        read_registered(root_fd, path, LIMIT)


def test_mode_links_and_bytes_are_exact(tmp_path: Path, root_fd: int) -> None:
    data = b"\xef\xbb\xbfa\r\nb\rc\nx = 1 \xff\xfe \xe2\x80\xa8"
    (tmp_path / "f").write_bytes(data)
    (tmp_path / "f").chmod(0o1641)
    os.link(tmp_path / "f", tmp_path / "g")
    content = read_registered(root_fd, "f", LIMIT)
    assert content is not None
    assert (content.data, content.mode, content.links) == (data, 0o1641, 2)


def test_unicode_names_are_utf8_and_never_normalised(tmp_path: Path, root_fd: int) -> None:
    (tmp_path / "\N{LATIN SMALL LETTER E WITH ACUTE}").write_bytes(b"composed")
    content = read_registered(root_fd, "\N{LATIN SMALL LETTER E WITH ACUTE}", LIMIT)
    assert content is not None
    if sys.platform == "linux":
        assert read_registered(root_fd, "e\N{COMBINING ACUTE ACCENT}", LIMIT) is None


def grow(path: Path) -> None:
    with path.open("ab") as stream:
        stream.write(b"more")


@pytest.mark.parametrize(
    "change",
    [
        grow,
        lambda path: os.truncate(path, 3),
        lambda path: path.chmod(0o600),
        lambda path: os.utime(path, ns=(1, 1)),
        lambda path: os.link(path, path.with_name("other")),
        lambda path: path.write_bytes(b"9876543210"),
    ],
    ids=["append", "truncate", "chmod", "utime", "link", "rewrite"],
)
def test_a_change_during_the_read_is_seen(
    tmp_path: Path, root_fd: int, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"0123456789")
    path.chmod(0o644)
    os.utime(path, ns=(10, 10))
    really_read = os.read

    def read_then_change(fd: int, count: int) -> bytes:
        data = really_read(fd, count)
        monkeypatch.undo()
        change(path)
        return data

    monkeypatch.setattr("firsthand.files.reading.os.read", read_then_change)
    assert refusal(root_fd, "f").reason == "changed-during-read"


@pytest.mark.parametrize("swapped", ["leaf", "folder"])
def test_a_link_swapped_in_after_the_look_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    """The flipping race hits this moment rarely; here it is hit always."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(b"outside")
    (tmp_path / "ws" / "d").mkdir(parents=True)
    (tmp_path / "ws" / "d" / "f").write_bytes(b"inside")
    root_fd = open_folder(tmp_path / "ws")
    really_stat = os.stat

    def look_then_swap(path: bytes, *, dir_fd: int, follow_symlinks: bool) -> os.stat_result:
        found = really_stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        monkeypatch.undo()
        if swapped == "leaf":
            (tmp_path / "ws" / "d" / "f").unlink()
            (tmp_path / "ws" / "d" / "f").symlink_to(outside / "f")
        else:
            (tmp_path / "ws" / "d").rename(tmp_path / "ws" / "gone")
            (tmp_path / "ws" / "d").symlink_to(outside)
        return found

    monkeypatch.setattr("firsthand.files.reading.os.stat", look_then_swap)
    if swapped == "leaf":
        assert refusal(root_fd, "d/f").reason == "symlink"
    else:
        # The folder was open by then: what is read is still what lay inside.
        content = read_registered(root_fd, "d/f", LIMIT)
        assert content is not None
        assert content.data == b"inside"
    os.close(root_fd)


def test_a_file_that_holds_more_than_it_claims_is_refused() -> None:
    own = Path(f"/proc/{os.getpid()}")
    if not (own / "status").exists():
        pytest.skip("no /proc here")
    fd = open_folder(own)
    assert os.stat("status", dir_fd=fd).st_size == 0
    assert refusal(fd, "status").reason == "changed-during-read"
    os.close(fd)


def test_short_reads_are_continued(tmp_path: Path, root_fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_bytes(bytes(range(256)))
    really_read = os.read
    monkeypatch.setattr("firsthand.files.reading.os.read", lambda fd, count: really_read(fd, min(count, 7)))
    content = read_registered(root_fd, "f", LIMIT)
    assert content is not None
    assert content.data == bytes(range(256))


def test_the_kind_is_judged_on_the_open_descriptor() -> None:
    reader, writer = os.pipe()
    try:
        with pytest.raises(FileRefusedError) as caught:
            read_open_file(reader, LIMIT, "pipe")
        assert caught.value.reason == "fifo"
    finally:
        os.close(reader)
        os.close(writer)


def test_a_root_that_is_a_link_or_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "file").write_bytes(b"")
    for name in ("link", "file", "absent"):
        with pytest.raises(FileRefusedError):
            open_folder(tmp_path / name)


def test_a_deep_path_holds_few_descriptors(tmp_path: Path, root_fd: int) -> None:
    parts = ["d"] * 300
    fd = os.dup(root_fd)
    for part in parts:
        os.mkdir(part, dir_fd=fd)
        below = os.open(part, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    leaf = os.open("f", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=fd)
    os.write(leaf, b"deep")
    os.close(leaf)
    os.close(fd)
    before = len(os.listdir("/dev/fd"))
    with Cursor(root_fd) as cursor:
        content = cursor.read("/".join((*parts, "f")), LIMIT)
        assert len(os.listdir("/dev/fd")) <= before + 1
    assert content is not None
    assert content.data == b"deep"
    assert len(os.listdir("/dev/fd")) == before


def test_no_descriptor_is_left_after_refusals(tmp_path: Path, root_fd: int) -> None:
    (tmp_path / "d").mkdir()
    make_fifo(tmp_path / "d")
    make_link(tmp_path)
    before = len(os.listdir("/dev/fd"))
    assert refusal(root_fd, "d/it").reason == "fifo"
    for path in ("d/it/f", "it", "it/f"):
        assert refusal(root_fd, path).reason in FILE_REASONS
    assert read_registered(root_fd, "d/absent/f", LIMIT) is None
    assert len(os.listdir("/dev/fd")) == before


def test_a_file_named_by_path_obeys_the_same_rules(tmp_path: Path) -> None:
    for make, reason in LEAVES:
        folder = tmp_path / f"{make.__name__}-by-path"
        folder.mkdir()
        make(folder)
        with pytest.raises(FileRefusedError) as caught:
            read_path(folder / "it", LIMIT)
        assert caught.value.reason == reason
    with pytest.raises(FileRefusedError) as caught:
        read_path(Path("/dev/zero"), LIMIT)
    assert caught.value.reason == "device"
    assert read_path(tmp_path / "absent", LIMIT) is None
    (tmp_path / "f").write_bytes(b"\xffx")
    content = read_path(tmp_path / "f", LIMIT)
    assert content is not None
    assert content.data == b"\xffx"


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.binary(max_size=4096),
    mode=st.integers(0o400, 0o777).filter(lambda mode: mode & 0o400),
    name=st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=40),
)
def test_any_bytes_mode_and_name_come_back(tmp_path: Path, root_fd: int, data: bytes, mode: int, name: str) -> None:
    if name in (".", "..") or len(name.encode()) > 255:
        return
    path = tmp_path / name
    path.write_bytes(data)
    path.chmod(mode)
    content = read_registered(root_fd, name, LIMIT)
    path.unlink()
    assert content is not None
    assert (content.data, content.mode) == (data, mode)
    assert stat.S_IMODE(content.mode) == mode
