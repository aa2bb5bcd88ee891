from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.mutation import Replacement, replace_once
from firsthand.records import Mutation

MIXED = b"\xef\xbb\xbfa\r\nb\rc\nx = 1"


def mutation(old: str, new: str) -> Mutation:
    return Mutation(check="c", path="value.py", old=old, new=new)


@pytest.mark.parametrize(
    ("original", "old", "new", "expected"),
    [
        (MIXED, "x = 1", "x = 2", b"\xef\xbb\xbfa\r\nb\rc\nx = 2"),
        (MIXED, "a\r\nb", "", b"\xef\xbb\xbf\rc\nx = 1"),
        (MIXED, "\ufeff", "", b"a\r\nb\rc\nx = 1"),
        ("x\u2028y\n".encode(), "y", "z", "x\u2028z\n".encode()),
        ("é".encode(), "é", "e\u0301", "e\u0301".encode()),
        (b"aXb", "X", "XX", b"aXXb"),
    ],
)
def test_only_the_span_changes(original: bytes, old: str, new: str, expected: bytes) -> None:
    replacement = replace_once(original, mutation(old, new))
    assert isinstance(replacement, Replacement)
    assert replacement.data == expected
    assert original[replacement.offset_bytes :].startswith(old.encode())


@pytest.mark.parametrize(
    ("original", "old", "new", "cause"),
    [
        (b"aaa", "b", "c", "old-absent"),
        (b"", "b", "c", "old-absent"),
        (b"abc", "", "c", "old-absent"),
        (b"a\r\nb", "a\nb", "c", "old-absent"),
        ("e\u0301".encode(), "é", "x", "old-absent"),
        (b"a a", "a", "c", "old-not-unique"),
        (b"aaa", "aa", "c", "old-not-unique"),
        (b"abababa", "ababa", "c", "old-not-unique"),
        (b"abc", "b", "b", "old-equals-new"),
        (b"abc", "x", "x", "old-equals-new"),
        (b"abc", "b", "x" * 16385, "too-large"),
        (b"abc", "b" * 16385, "x", "too-large"),
        (b"abc", "b" * 17 * 1024, "x", "too-large"),
        (b"abc", "b", "é" * 8193, "too-large"),
        (b"\xff abc", "b", "x", "not-utf-8"),
        (b"abc\xc0\xaf", "b", "x", "not-utf-8"),
        (b"\xed\xa0\x80b", "b", "x", "not-utf-8"),
    ],
)
def test_what_does_not_apply_has_its_own_cause(original: bytes, old: str, new: str, cause: str) -> None:
    assert replace_once(original, mutation(old, new)) == cause


def test_the_longest_sides_are_accepted() -> None:
    old = "b" * 16384
    replacement = replace_once(b"a" + old.encode(), mutation(old, "x" * 16384))
    assert isinstance(replacement, Replacement)


@given(st.text("ab\r\n\u2028", max_size=12), st.text("ab\r\n\u2028", max_size=4), st.text("abc", max_size=4))
def test_it_applies_exactly_when_old_stands_once(text: str, old: str, new: str) -> None:
    original = text.encode()
    places = [place for place in range(len(text)) if old and text.startswith(old, place)]
    replacement = replace_once(original, mutation(old, new))
    if old != new and len(places) == 1:
        assert isinstance(replacement, Replacement)
        start = replacement.offset_bytes
        assert original[:start] + old.encode() + original[start + len(old.encode()) :] == original
        assert replacement.data == (text[: places[0]] + new + text[places[0] + len(old) :]).encode()
    else:
        assert isinstance(replacement, str)
