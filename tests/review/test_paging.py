from __future__ import annotations

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from firsthand.review.paging import REPLY_CHARACTERS, PageError, escaped_characters, page_of
from firsthand.review.tools import PAGE_BYTES

TEXTS = st.one_of(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=200),
    st.text(st.sampled_from('\x01"\\\n\r\t😀é\u2028\x85a'), min_size=1, max_size=50).map(lambda text: text * 900),
    st.builds(
        lambda lead, unit, count: lead + unit * count,
        st.text("ab", max_size=3),
        st.sampled_from("é€😀a"),
        st.integers(3_000, 20_000),
    ),
)


def pages(data: bytes) -> list[tuple[int, str]]:
    found, offset = [], 0
    while True:
        page = page_of(data, offset)
        found.append((offset, page.content))
        if page.next_offset is None:
            assert page.end == len(data)
            return found
        assert page.next_offset == page.end > offset
        offset = page.next_offset


@given(TEXTS)
@example("")
@example("a" * PAGE_BYTES)
@example("a" * (PAGE_BYTES - 1) + "😀")
@example("\x01" * PAGE_BYTES)
def test_pages_join_to_the_file_and_each_can_be_delivered_whole(text: str) -> None:
    data = text.encode()
    found = pages(data)
    assert "".join(content for _, content in found) == text
    for _, content in found:
        assert len(content.encode()) <= PAGE_BYTES
        inner = json.dumps(
            {"content": content, "totalBytes": 2**21, "nextOffset": 2**21, "sha256": "0" * 64}, ensure_ascii=False
        )
        assert len(json.dumps(inner, ensure_ascii=False).encode("utf-16-le")) // 2 <= REPLY_CHARACTERS < 51_000


@given(TEXTS.filter(lambda text: escaped_characters(text) <= 2 * len(text.encode())))
def test_no_more_pages_than_the_size_asks_for(text: str) -> None:
    data = text.encode()
    # At most three bytes of a page are left to the next one, so that no character is cut.
    assert len(pages(data)) <= max(1, math.ceil(len(data) / (PAGE_BYTES - 3)))


@given(TEXTS.filter(lambda text: not text.isascii()), st.data())
def test_an_offset_inside_a_character_is_refused(text: str, data: st.DataObject) -> None:
    raw = text.encode()
    inside = [position for position in range(len(raw)) if raw[position] & 0xC0 == 0x80]
    with pytest.raises(PageError, match="inside a character"):
        page_of(raw, data.draw(st.sampled_from(inside)))


@given(st.text(max_size=50), st.text(max_size=50))
def test_the_count_of_escaped_characters_is_what_escaping_gives(left: str, right: str) -> None:
    text = (left + right).encode("utf-8", "ignore").decode()
    inner = json.dumps(text, ensure_ascii=False)[1:-1]
    twice = json.dumps(inner, ensure_ascii=False)[1:-1]
    assert escaped_characters(text) >= len(twice.encode("utf-16-le")) // 2


@pytest.mark.parametrize("offset", [-1, 3, 4, 2**40])
def test_an_offset_outside_the_file_is_refused(offset: int) -> None:
    with pytest.raises(PageError, match="not in the file"):
        page_of(b"abc", offset)


def test_an_empty_file_ends_at_once() -> None:
    assert page_of(b"", 0).next_offset is None
    with pytest.raises(PageError):
        page_of(b"", 1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a\0b", "NUL byte at 1"),
        (b"ab\xff", "not UTF-8 at byte 2"),
        (b"\xc0\xaf", "not UTF-8"),
        (b"\xed\xa0\x80", "not UTF-8"),
    ],
)
def test_what_is_no_text_is_refused_with_its_reason(data: bytes, message: str) -> None:
    with pytest.raises(PageError, match=message):
        page_of(data, 0)


def test_a_line_of_the_largest_file_is_paged_without_end_of_line() -> None:
    assert len(pages(b"x" * 2 * 1024 * 1024)) == 128
