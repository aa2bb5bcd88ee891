from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.checks import EXCERPT_BYTES, excerpt
from firsthand.isolation.interface import Captured


def captured(data: bytes, total_bytes: int | None = None) -> Captured:
    return Captured(
        data=data,
        total_bytes=len(data) if total_bytes is None else total_bytes,
        sha256=hashlib.sha256(data).hexdigest(),
    )


def size(text: str) -> int:
    return len(text.encode())


def test_what_fits_is_shown_whole() -> None:
    shown = excerpt(captured(b"a" * EXCERPT_BYTES))
    assert (shown.head, shown.tail, shown.truncated) == ("a" * EXCERPT_BYTES, "", False)
    assert shown.total_bytes == EXCERPT_BYTES


def test_one_byte_more_is_cut_in_the_middle() -> None:
    shown = excerpt(captured(b"a" * EXCERPT_BYTES + b"b"))
    assert shown.truncated
    assert shown.head == "a" * (EXCERPT_BYTES // 2)
    assert shown.tail == "a" * (EXCERPT_BYTES // 2 - 1) + "b"


def test_what_the_host_did_not_keep_is_marked_even_when_the_rest_fits() -> None:
    assert excerpt(captured(b"abc", total_bytes=4)).truncated


def test_one_byte_then_emoji_never_exceeds_the_limit_and_never_shows_half_a_character() -> None:
    shown = excerpt(captured(b"x" + "😀".encode() * 10_000))
    assert set(shown.head) == {"x", "😀"}
    assert set(shown.tail) == {"😀"}
    assert size(shown.head) + size(shown.tail) <= EXCERPT_BYTES


def test_undecodable_bytes_differ_from_a_real_replacement_character() -> None:
    shown = excerpt(captured(b"\xff\xc3\x28\xed\xa0\x80\xc0\xaf\xef\xbf\xbd"))
    assert shown.head == "\\xff\\xc3(\\xed\\xa0\\x80\\xc0\\xaf\ufffd"


@pytest.mark.parametrize("data", [b"\xff" * 9000, b"\xf0\x9f\x98" * 5000, b"\x80" * 8193])
def test_escapes_count_in_their_written_length(data: bytes) -> None:
    shown = excerpt(captured(data))
    assert shown.truncated
    assert size(shown.head) + size(shown.tail) <= EXCERPT_BYTES
    assert size(shown.head) > EXCERPT_BYTES // 2 - 8
    assert shown.head.startswith("\\x")
    assert size(shown.head) % 4 == 0


@given(st.binary(max_size=200), st.integers(16, 64))
def test_no_bytes_exceed_the_limit_or_lose_their_ends(data: bytes, limit_bytes: int) -> None:
    shown = excerpt(captured(data), limit_bytes)
    whole = data.decode("utf-8", "backslashreplace")
    assert size(shown.head) + size(shown.tail) <= limit_bytes
    assert shown.truncated == (size(whole) > limit_bytes)
    assert whole.startswith(shown.head)
    if shown.truncated:
        assert whole.endswith(shown.tail)
        # A cut drops at most one unit (four bytes) at each end of the gap.
        assert size(shown.head) >= limit_bytes // 2 - 4
        assert size(shown.tail) >= limit_bytes // 2 - 7


@given(st.text(max_size=120), st.integers(16, 64))
def test_text_is_cut_between_characters(text: str, limit_bytes: int) -> None:
    shown = excerpt(captured(text.encode()), limit_bytes)
    assert text.startswith(shown.head)
    assert text.endswith(shown.tail)
