from __future__ import annotations

import os
from pathlib import Path

import pytest

from firsthand.records import LimitName
from firsthand_seatbelt.watchdog import Watchdog, Watched

KIB = 1024


def look_until_done(watched: Watched, looks: int = 10_000) -> LimitName | None:
    """One whole walk, however many looks it takes."""
    watchdog = Watchdog([watched])
    for _ in range(looks):
        found = watchdog.look()
        if found is not None or watchdog._walk is None:
            return found
    raise AssertionError("the walk did not end")


class TestSizes:
    def test_an_empty_or_missing_folder_is_within_any_limit(self, tmp_path: Path) -> None:
        assert look_until_done(Watched(str(tmp_path), 0, 0)) is None
        assert look_until_done(Watched(str(tmp_path / "none"), 0, 0)) is None

    def test_bytes_on_disk_count(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(os.urandom(100 * KIB))
        assert look_until_done(Watched(str(tmp_path), 50 * KIB)) == "copy-size"
        assert look_until_done(Watched(str(tmp_path), 200 * KIB)) is None

    def test_a_sparse_file_is_as_small_as_it_is(self, tmp_path: Path) -> None:
        with open(tmp_path / "sparse", "wb") as sparse:
            sparse.truncate(1 << 30)
        assert look_until_done(Watched(str(tmp_path), 1 << 20)) is None

    def test_entries_count_at_any_depth(self, tmp_path: Path) -> None:
        for number in range(10):
            (tmp_path / f"d{number}").mkdir()
            (tmp_path / f"d{number}" / "f").touch()
        assert look_until_done(Watched(str(tmp_path), 1 << 30, 20)) is None
        assert look_until_done(Watched(str(tmp_path), 1 << 30, 19)) == "copy-entries"

    def test_what_lies_deeper_than_a_path_can_name_counts(self, tmp_path: Path) -> None:
        here = os.open(tmp_path, os.O_RDONLY)
        for _ in range(600):
            os.mkdir("deep" * 10, dir_fd=here)
            below = os.open("deep" * 10, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        out = os.open("big", os.O_WRONLY | os.O_CREAT, dir_fd=here)
        os.write(out, os.urandom(300 * KIB))
        os.close(out)
        os.close(here)
        before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc") else None
        assert look_until_done(Watched(str(tmp_path), 100 * KIB + 600 * 4 * KIB)) == "copy-size"
        if before is not None:
            assert len(os.listdir("/proc/self/fd")) <= before

    def test_links_are_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "big").write_bytes(os.urandom(500 * KIB))
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
        (tmp_path / "in" / "loop").symlink_to(".")
        assert look_until_done(Watched(str(tmp_path / "in"), 100 * KIB, 2)) is None

    def test_a_folder_moved_away_meanwhile_ends_the_walk_inside_the_tree(self, tmp_path: Path) -> None:
        """Going up again would otherwise lead into another tree."""
        inside, outside = tmp_path / "in", tmp_path / "out"
        (inside / "a" / "b").mkdir(parents=True)
        outside.mkdir()
        for number in range(50):
            (outside / f"f{number}").touch()
        from firsthand_seatbelt.watchdog import _sizes  # noqa: PLC0415 # the walk itself, step by step

        walk = _sizes(str(inside))
        next(walk)  # a
        next(walk)  # b, listed from within a
        (inside / "a").rename(outside / "a")
        assert len(list(walk)) == 0


class TestSlices:
    def test_a_long_walk_is_taken_in_short_looks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for number in range(100):
            (tmp_path / f"f{number}").touch()
        monkeypatch.setattr("firsthand_seatbelt.watchdog._SLICE_S", 0.0)
        watchdog = Watchdog([Watched(str(tmp_path), 1 << 30, 98)])
        looks = [watchdog.look() for _ in range(98)]
        assert looks == [None] * 98
        assert watchdog.look() == "copy-entries"
