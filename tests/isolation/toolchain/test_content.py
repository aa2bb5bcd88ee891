"""The digest of a root follows its content, and the cache changes nothing but the time it takes."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from firsthand.isolation.toolchain import RootDigests

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "tool").write_text("one")
    (folder / "link").symlink_to("bin/tool")
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder


def test_the_cache_does_not_change_the_digest(root: Path, cache: Path) -> None:
    plain = RootDigests(None).digest(root)
    cached = RootDigests(cache)
    assert [cached.digest(root), cached.digest(root)] == [plain, plain]
    assert RootDigests(cache).digest(root) == plain


@pytest.mark.parametrize(
    "change", ["content", "same size and time", "mode", "link", "added", "removed", "renamed", "kind"]
)
def test_every_change_shows(root: Path, cache: Path, change: str) -> None:
    digests = RootDigests(cache)
    before = digests.digest(root)
    tool = root / "bin" / "tool"
    if change == "content":
        tool.write_text("longer than before")
    elif change == "same size and time":
        times = tool.stat()
        tool.write_text("two")
        os.utime(tool, ns=(times.st_atime_ns, times.st_mtime_ns))
    elif change == "mode":
        tool.chmod(0o755)
    elif change == "link":
        (root / "link").unlink()
        (root / "link").symlink_to("bin/other")
    elif change == "added":
        (root / "bin" / "new").write_text("")
    elif change == "removed":
        tool.unlink()
    elif change == "renamed":
        tool.rename(root / "bin" / "tool2")
    else:
        tool.unlink()
        os.mkfifo(tool)
    assert digests.digest(root) != before


def test_the_cache_is_private(root: Path, cache: Path) -> None:
    RootDigests(cache).digest(root)
    (file,) = cache.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "junk", [b"", b"{", b"[]", b'{"version": 1, "files": 3}', b'{"version": 1, "files": {"a": 1}}']
)
def test_a_damaged_cache_is_read_anew(root: Path, cache: Path, junk: bytes) -> None:
    plain = RootDigests(cache).digest(root)
    (file,) = cache.iterdir()
    file.write_bytes(junk)
    assert RootDigests(cache).digest(root) == plain


def test_a_cache_that_can_not_be_written_only_costs_time(root: Path, cache: Path) -> None:
    digests = RootDigests(cache)
    cache.rmdir()
    assert digests.digest(root) == RootDigests(None).digest(root)
