from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.records import Manifest, ManifestEntry
from firsthand.review.coverage import Delivered


def entry(path: str, size: int | None) -> ManifestEntry:
    if size is None:
        return ManifestEntry(path=path, state="missing", mode=None, size=None, links=None, sha256=None)
    return ManifestEntry(path=path, state="present", mode=0o644, size=size, links=1, sha256="0" * 64)


MANIFEST = Manifest(entries=(entry("b", 100), entry("gone", None), entry("a", 0), entry("c", 5)))


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)).map(sorted)))
def test_distinct_bytes_are_counted_however_they_come(ranges: list[list[int]]) -> None:
    delivered = Delivered(MANIFEST)
    seen: set[int] = set()
    for start, end in ranges:
        if start < end:
            delivered.add("b", start, end)
            seen.update(range(start, end))
    found = {record.path: record for record in delivered.records()}
    if not seen:
        assert found == {}
        return
    assert found["b"].delivered_bytes == len(seen)
    assert found["b"].whole == (len(seen) == 100)
    assert ("b" in delivered.unread()) != found["b"].whole


def test_what_was_never_asked_for_is_unread_in_the_manifest_s_order() -> None:
    delivered = Delivered(MANIFEST)
    delivered.add("c", 0, 4)
    assert delivered.unread() == ("b", "a", "c")
    delivered.add("c", 4, 5)
    delivered.add("a", 0, 0)
    assert delivered.unread() == ("b",)
    assert [(record.path, record.whole) for record in delivered.records()] == [("a", True), ("c", True)]


def test_what_is_not_in_the_file_is_refused() -> None:
    delivered = Delivered(MANIFEST)
    with pytest.raises(ValueError, match="not in"):
        delivered.add("c", 0, 6)
    with pytest.raises(KeyError):
        delivered.add("gone", 0, 0)
