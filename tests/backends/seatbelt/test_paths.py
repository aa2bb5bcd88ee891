from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.isolation.interface import IsolationError
from firsthand_seatbelt.paths import (
    LONGEST_PATH_BYTES,
    ancestors,
    contains,
    kernel_spelling,
    links_on_the_way,
    refuse_inexpressible,
)

WHAT = "a root"


class TestKernelSpelling:
    @pytest.mark.parametrize("spelling", ["{}/", "{}//", "/{}", "{}/.", "{}/./"])
    def test_one_folder_has_one_spelling(self, tmp_path: Path, spelling: str) -> None:
        (tmp_path / "a").mkdir()
        assert kernel_spelling(spelling.format(tmp_path / "a"), what=WHAT) == os.path.realpath(tmp_path / "a")

    def test_links_are_resolved_at_every_component(self, tmp_path: Path) -> None:
        (tmp_path / "real" / "deep").mkdir(parents=True)
        (tmp_path / "short").symlink_to("real")
        found = kernel_spelling(tmp_path / "short" / "deep", what=WHAT)
        assert found == os.path.realpath(tmp_path / "real" / "deep")

    @pytest.mark.parametrize("name", ['a"b', "a\\b", "a(b)c", "a b", "a;b", "a'b", "a=b", "#a", "a|b"])
    def test_what_only_a_text_would_have_to_escape_is_fine(self, tmp_path: Path, name: str) -> None:
        """A parameter's value is never parsed, so these are ordinary names."""
        (tmp_path / name).mkdir()
        assert kernel_spelling(tmp_path / name, what=WHAT).endswith(name)

    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            ("a\nb", "a control character"),
            ("a\rb", "a control character"),
            ("a\tb", "a control character"),
            ("a\x7fb", "a control character"),
            ("a\x1bb", "a control character"),
            (unicodedata.normalize("NFC", "josé"), "not plain ASCII"),
            (unicodedata.normalize("NFD", "josé"), "not plain ASCII"),
            ("a\u2028b", "not plain ASCII"),
            (os.fsdecode(b"a\xffb"), "not plain ASCII"),
        ],
    )
    def test_what_may_not_arrive_unchanged_is_refused_by_name(self, tmp_path: Path, name: str, reason: str) -> None:
        (tmp_path / name).mkdir()
        with pytest.raises(IsolationError, match=reason) as caught:
            kernel_spelling(tmp_path / name, what=WHAT)
        assert caught.value.message.startswith("a root can't be confined")
        assert caught.value.where.isascii()
        assert "\n" not in caught.value.where
        assert caught.value.next_step

    def test_so_is_a_plain_link_to_it(self, tmp_path: Path) -> None:
        (tmp_path / "josé").mkdir()
        (tmp_path / "plain").symlink_to("josé")
        with pytest.raises(IsolationError, match="not plain ASCII"):
            kernel_spelling(tmp_path / "plain", what=WHAT)

    def test_1100_bytes_are_refused_and_the_last_possible_length_is_not(self) -> None:
        refuse_inexpressible("/" + "a" * (LONGEST_PATH_BYTES - 1), what=WHAT)
        for length in (LONGEST_PATH_BYTES, 1100):
            with pytest.raises(IsolationError, match=f"it is {length + 1} bytes long"):
                kernel_spelling("/" + "a" * length, what=WHAT)

    def test_a_long_path_behind_a_short_link_is_refused(self, tmp_path: Path) -> None:
        here = os.open(tmp_path, os.O_RDONLY)
        for _ in range(6):
            os.mkdir("d" * 200, dir_fd=here)
            below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        long = os.readlink(f"/proc/self/fd/{here}") if os.path.exists("/proc") else None
        os.close(here)
        if long is None:
            pytest.skip("needs /proc to name the deep folder")
        (tmp_path / "short").symlink_to(long)
        with pytest.raises(IsolationError, match="bytes long"):
            kernel_spelling(tmp_path / "short", what=WHAT)

    @pytest.mark.parametrize(
        ("path", "reason"),
        [
            ("relative/path", "not absolute"),
            ("", "not absolute"),
            ("/usr/../etc", r"`\.\.`"),
            ("/nonexistent/x", "can't be resolved"),
        ],
    )
    def test_other_refusals(self, path: str, reason: str) -> None:
        with pytest.raises(IsolationError, match=reason):
            kernel_spelling(path, what=WHAT)

    def test_a_loop_of_links_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")
        with pytest.raises(IsolationError, match="can't be resolved"):
            kernel_spelling(tmp_path / "a", what=WHAT)
        with pytest.raises(IsolationError, match="loop"):
            links_on_the_way(tmp_path / "a")


class TestLinksOnTheWay:
    def test_names_each_link_with_its_parent_resolved(self, tmp_path: Path) -> None:
        """As with Homebrew: bin/node -> ../Cellar/node/24/bin/node, and opt/node -> ../Cellar/node/24."""
        base = Path(os.path.realpath(tmp_path))
        (base / "Cellar" / "node" / "24" / "bin").mkdir(parents=True)
        (base / "Cellar" / "node" / "24" / "bin" / "node").touch()
        (base / "opt").mkdir()
        (base / "bin").mkdir()
        (base / "opt" / "node").symlink_to("../Cellar/node/24")
        (base / "bin" / "node").symlink_to("../opt/node/bin/node")
        (base / "alias").symlink_to(base / "bin")
        assert links_on_the_way(base / "alias" / "node") == (
            f"{base}/alias",
            f"{base}/bin/node",
            f"{base}/opt/node",
        )

    def test_a_path_without_links_has_none(self, tmp_path: Path) -> None:
        assert links_on_the_way(os.path.realpath(tmp_path)) == ()


class TestFolders:
    def test_ancestors(self) -> None:
        assert ancestors("/a/b/c") == ("/a", "/a/b")
        assert ancestors("/a") == ()

    def test_contains_goes_by_components(self) -> None:
        assert contains("/a/b", "/a/b")
        assert contains("/a/b", "/a/b/c")
        assert contains("/", "/a")
        assert not contains("/a/b", "/a/bc")
        assert not contains("/a/b", "/a")

    @given(st.lists(st.text(st.characters(codec="ascii", exclude_characters="/\0"), min_size=1), min_size=1))
    def test_every_ancestor_contains_the_path(self, parts: list[str]) -> None:
        path = "/" + "/".join(parts)
        assert all(contains(folder, path) for folder in ancestors(path))
        assert len(ancestors(path)) == len(parts) - 1
