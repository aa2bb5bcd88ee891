from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from firsthand.canonical import (
    MAX_SAFE_INTEGER,
    JSONValue,
    StrictJSONError,
    canonical_bytes,
    canonical_digest,
    parse_strict,
    sha256_hex,
)

VECTORS = {
    # RFC 8785, 3.2.2 without its floats, and 3.2.3.
    "rfc-strings": (
        rb'{"string": "\u20ac$\u000F\u000aA' + rb"'" + rb'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}',
        '{"literals":[null,true,false],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    ),
    "rfc-sorting": (
        (
            rb'{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", '
            rb'"1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", '
            rb'"\u00f6": "Latin Small Letter O With Diaeresis"}'
        ),
        (
            '{"\\r":"Carriage Return","1":"One","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis",'
            '"\u20ac":"Euro Sign","\U0001f600":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}'
        ),
    ),
    # The test data published beside the RFC.
    "arrays": (b'[56, {"d": true, "10": null, "1": []}]', '[56,{"1":[],"10":null,"d":true}]'),
    "french": (
        '{"peach": "This sorting order", "p\u00e9ch\u00e9": "is wrong according to French", '
        '"p\u00eache": "but canonicalization MUST", "sin": "ignore locale"}'.encode(),
        (
            '{"peach":"This sorting order","p\u00e9ch\u00e9":"is wrong according to French",'
            '"p\u00eache":"but canonicalization MUST","sin":"ignore locale"}'
        ),
    ),
    "structures": (
        (
            b'{"1": {"f": {"f": "hi", "F": 5}, "\\n": 56}, "10": {}, "": "empty", "a": {}, '
            b'"111": [{"e": "yes", "E": "no"}], "A": {}}'
        ),
        '{"":"empty","1":{"\\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}',
    ),
    "unicode": (b'{"Unnormalized Unicode": "A\\u030a"}', '{"Unnormalized Unicode":"A\u030a"}'),
    "weird": (
        (
            rb'{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\u000a": "Newline", "1": "One", '
            rb'"\u0080": "Control\u007f", "\ud83d\ude02": "Smiley", "\u00f6": "Latin", "\ufb33": "Hebrew", '
            rb'"</script>": "Browser Challenge"}'
        ),
        (
            '{"\\n":"Newline","\\r":"Carriage Return","1":"One","</script>":"Browser Challenge",'
            '"\u0080":"Control\u007f","\u00f6":"Latin","\u20ac":"Euro Sign","\U0001f602":"Smiley","\ufb33":"Hebrew"}'
        ),
    ),
    # Order by UTF-16 code unit, which differs from the order of code points exactly here.
    "utf16-order": (rb'{"\uffff": 1, "\ud800\udc00": 2}', '{"\U00010000":2,"\uffff":1}'),
    "safe-integers": (b"[9007199254740991, -9007199254740991, 0]", "[9007199254740991,-9007199254740991,0]"),
}


@pytest.mark.parametrize(("raw", "canonical"), VECTORS.values(), ids=VECTORS)
def test_the_published_vectors_hold(raw: bytes, canonical: str) -> None:
    assert canonical_bytes(parse_strict(raw)) == canonical.encode()


REFUSED = {
    "empty": b"",
    "blank": b"  \n",
    "two-values": b"{} {}",
    "trailing-bytes": b'{"a":1}x',
    "trailing-nul": b"{}\0",
    "byte-order-mark": b"\xef\xbb\xbf{}",
    "utf16": '{"a":1}'.encode("utf-16"),
    "invalid-utf8": b'"\xff"',
    "overlong-utf8": b'"\xc0\xaf"',
    "utf8-surrogate": b'"\xed\xa0\x80"',
    "single-quotes": b"{'a':1}",
    "comma": b"[1,]",
    "comment": b"[1] // one",
    "raw-control": b'"a\nb"',
    "float": b"1.0",
    "float-integer": b'{"a": 1.0}',
    "exponent": b"1e0",
    "negative-exponent": b"1e-7",
    "overflow": b"1e999",
    "nan": b"NaN",
    "infinity": b"[Infinity]",
    "minus-infinity": b"[-Infinity]",
    "unsafe": b"9007199254740992",
    "unsafe-negative": b"-9007199254740992",
    "unsafe-next": b'{"n": 9007199254740993}',
    "ten-thousand-digits": b"9" * 10_000,
    "minus-zero": b"-0",
    "leading-zero": b"01",
    "plus": b"+1",
    "duplicate": b'{"verdict": "fail", "verdict": "pass"}',
    "duplicate-same": b'{"a": 1, "a": 1}',
    "duplicate-nested": b'[{"a": {"b": 1, "c": 2, "b": 3}}]',
    "duplicate-escaped": b'{"verdict": 1, "\\u0076erdict": 2}',
    "duplicate-empty": b'{"": 1, "": 2}',
    "lone-high": b'"\\ud800"',
    "lone-low": b'"\\udc00"',
    "lone-pair-reversed": b'"\\udc00\\ud800"',
    "lone-in-key": b'{"\\udfff": 1}',
    "lone-after-pair": b'"\\ud83d\\ude00\\ud83d"',
    "deep-arrays": b"[" * 65 + b"]" * 65,
    "deep-objects": b'{"a":' * 65 + b"1" + b"}" * 65,
    "very-deep": b"[" * 1_000_000,
}


@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED)
def test_what_is_not_strict_is_refused(raw: bytes) -> None:
    with pytest.raises(StrictJSONError):
        parse_strict(raw)


def test_limits_are_exact() -> None:
    assert parse_strict(b'"12"', limit_bytes=4) == "12"
    with pytest.raises(StrictJSONError, match="at most 3"):
        parse_strict(b'"12"', limit_bytes=3)
    assert parse_strict(b"[[1]]", limit_depth=2) == [[1]]
    with pytest.raises(StrictJSONError, match="deeper than 1"):
        parse_strict(b"[[1]]", limit_depth=1)
    assert parse_strict(b"[" * 64 + b"]" * 64)


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        float("nan"),
        float("inf"),
        [0.5],
        {"a": {"b": 1.5}},
        MAX_SAFE_INTEGER + 1,
        "\ud800",
        {"\udc00": 1},
        -(2**64),
    ],
)
def test_what_has_no_single_form_is_not_written(value: Any) -> None:
    with pytest.raises(StrictJSONError):
        canonical_bytes(value)


def test_one_and_true_stay_different() -> None:
    assert canonical_bytes([1, True, 0, False]) == b"[1,true,0,false]"


def test_digests_are_of_exact_bytes() -> None:
    assert sha256_hex(b"") == hashlib.sha256(b"").hexdigest()
    assert canonical_digest({"b": 1, "a": 2}) == hashlib.sha256(b'{"a":2,"b":1}').hexdigest()
    assert canonical_digest("caf\u00e9") != canonical_digest("cafe\u0301")


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES: st.SearchStrategy[JSONValue] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER), TEXT),
    lambda children: st.one_of(st.lists(children, max_size=5), st.dictionaries(TEXT, children, max_size=5)),
    max_leaves=20,
)


def sorted_by_code_units(value: JSONValue) -> JSONValue:
    """An independent way to the same order."""
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return {key: sorted_by_code_units(value[key]) for key in keys}
    return [sorted_by_code_units(child) for child in value] if isinstance(value, list) else value


@given(VALUES)
def test_a_value_comes_back_and_its_form_is_stable(value: JSONValue) -> None:
    canonical = canonical_bytes(value)
    assert parse_strict(canonical) == value
    assert canonical_bytes(parse_strict(canonical)) == canonical


@given(VALUES)
def test_the_form_agrees_with_an_independent_writer(value: JSONValue) -> None:
    written = json.dumps(sorted_by_code_units(value), ensure_ascii=False, separators=(",", ":"))
    assert canonical_bytes(value) == written.encode()


@given(VALUES, VALUES)
def test_different_values_have_different_forms(one: JSONValue, other: JSONValue) -> None:
    # Python calls 1 and True equal; their JSON differs, so the comparison is by an independent spelling.
    assume(json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True))
    assert canonical_bytes(one) != canonical_bytes(other)


@given(st.dictionaries(TEXT, st.integers(0, 9), min_size=1, max_size=6), st.data())
def test_a_repeated_key_is_refused_wherever_and_however_spelled(members: dict[str, int], data: st.DataObject) -> None:
    repeated = data.draw(st.sampled_from(sorted(members)))
    units = repeated.encode("utf-16-be")
    escaped = "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
    spelled = [f"{json.dumps(key)}:{value}" for key, value in members.items()]
    spelled.insert(data.draw(st.integers(0, len(spelled))), f'"{escaped}":7')
    raw = ("{" + ",".join(spelled) + "}").encode()
    with pytest.raises(StrictJSONError, match="duplicate"):
        parse_strict(raw)
    with pytest.raises(StrictJSONError, match="duplicate"):
        parse_strict(b'[{"x":' + raw + b"}]")


@given(st.binary(max_size=60))
def test_any_bytes_are_parsed_or_refused_and_nothing_else(raw: bytes) -> None:
    try:
        value = parse_strict(raw)
    except StrictJSONError:
        return
    assert parse_strict(canonical_bytes(value)) == value
