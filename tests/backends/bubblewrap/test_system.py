"""What stands in for /etc, and the files of its own that a sandbox needs on the host."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from firsthand.isolation.interface import IsolationError, Limits, Workspace

if sys.platform != "linux":
    pytest.skip("bubblewrap needs Linux", allow_module_level=True)

import resource

from firsthand_bubblewrap.system import prepare_etc


@contextmanager
def umask(value: int) -> Iterator[None]:
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def no_space() -> Iterator[None]:
    """No file of more than 16 bytes can be written: the nearest to a full disk without one."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def host_etc(tmp_path: Path) -> Path:
    folder = tmp_path / "etc"
    (folder / "java-1" / "conf").mkdir(parents=True)
    (folder / "java-1" / "conf" / "a").write_text("java")
    (folder / "java-1" / "private").write_text("secret")
    (folder / "java-1" / "private").chmod(0o640)
    (folder / "java-1" / "link").symlink_to("private")
    (folder / "services").write_text("services")
    (folder / "shadow").write_text("secret")
    (folder / "localtime").symlink_to("/usr/share/zoneinfo/UTC")
    os.mkfifo(folder / "protocols")
    return folder


def everything(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode)
        for path in folder.rglob("*")
        if not path.is_symlink()
    }


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o000])
def test_etc_holds_what_everyone_may_read_and_everyone_can(tmp_path: Path, host_etc: Path, mask: int) -> None:
    made = tmp_path / "made"
    with umask(mask):
        prepare_etc(made, uid=7, gid=8, source=host_etc)
    assert stat.S_IMODE(made.stat().st_mode) == 0o755
    assert everything(made) == {
        "alternatives": 0o755,
        "java-1": 0o755,
        "java-1/conf": 0o755,
        "java-1/conf/a": 0o644,
        "services": 0o644,
        "passwd": 0o644,
        "group": 0o644,
        "hosts": 0o644,
        "machine-id": 0o644,
    }
    assert os.readlink(made / "localtime") == "/usr/share/zoneinfo/UTC"
    assert "sandbox:x:7:8:" in (made / "passwd").read_text()


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_commands_can_read_etc_whatever_the_umask(make_bench: Callable[..., Any], mask: int) -> None:
    with umask(mask):
        result = make_bench().shell("id -un; cat /etc/hosts >/dev/null && ls /etc/alternatives >/dev/null && echo read")
    assert result.stdout.data == b"sandbox\nread\n"


def test_a_full_disk_is_a_refusal_and_no_half_an_etc(backend: Any, tmp_path: Path) -> None:
    for name in ("copy", "private"):
        (tmp_path / name).mkdir()
    workspace = Workspace(
        copy=tmp_path / "copy", shown_at=Path("/srv/firsthand-test/project"), private=tmp_path / "private"
    )
    with no_space(), pytest.raises(IsolationError, match="can't be made"), backend.enclose(workspace, Limits(), None):
        pass


def test_a_full_disk_at_a_rewrite_is_told_and_changes_nothing(make_bench: Callable[..., Any]) -> None:
    bench = make_bench()
    with no_space(), pytest.raises(IsolationError, match="laid ready") as caught:
        bench.enclosure.rewrite("a.txt", b"x" * 100, 0o644)
    assert caught.value.where == "a.txt"
    assert (bench.copy / "a.txt").read_text() == "hello\n"
    bench.enclosure.rewrite("a.txt", b"x" * 100, 0o644)
    assert (bench.copy / "a.txt").read_bytes() == b"x" * 100
