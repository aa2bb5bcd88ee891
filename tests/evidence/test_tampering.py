"""Whatever is changed in a sealed file is found: bytes, records and values, also when the forger reseals."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence.builder import check_evidence, forged, interleaved_evidence, mutate_evidence, rebind, reseal
from evidence.reviews import review_evidence
from evidence.vectors import published_key
from firsthand.evidence import seal, verify
from firsthand.records import Evidence

KEY = published_key()
SMALL = seal(check_evidence())
SIGNED = seal(check_evidence(), KEY)


def accepted(raw: bytes) -> bool:
    """Whether a file is believed by somebody who wants a signature of the one trusted key."""
    return verify(raw, trusted_keys=(KEY.public,), require_signature=True).valid


class TestBytes:
    @pytest.mark.parametrize("bit", [0x01, 0x20, 0x80])
    def test_every_byte_of_an_unsigned_file(self, bit: int) -> None:
        assert verify(SMALL).valid
        for place in range(len(SMALL)):
            changed = bytearray(SMALL)
            changed[place] ^= bit
            assert not verify(bytes(changed)).valid, place

    def test_every_byte_of_a_signed_file(self) -> None:
        assert accepted(SIGNED)
        for place in range(len(SIGNED)):
            changed = bytearray(SIGNED)
            changed[place] ^= 1 << place % 8
            assert not accepted(bytes(changed)), place

    def test_every_byte_left_out_or_doubled(self) -> None:
        for place in range(len(SMALL)):
            assert not verify(SMALL[:place] + SMALL[place + 1 :]).valid, place
            assert not verify(SMALL[:place] + SMALL[place : place + 1] + SMALL[place:]).valid, place

    def test_every_shorter_file(self) -> None:
        for length in range(len(SMALL)):
            assert not verify(SMALL[:length]).valid, length

    @settings(deadline=None)
    @given(place=st.integers(0, len(SIGNED)), gone=st.integers(0, 40), put=st.binary(max_size=40))
    def test_any_stretch_replaced(self, place: int, gone: int, put: bytes) -> None:
        changed = SIGNED[:place] + put + SIGNED[place + gone :]
        assert accepted(changed) is (changed == SIGNED)

    @settings(deadline=None)
    @given(raw=st.binary(max_size=200))
    def test_noise_is_an_answer(self, raw: bytes) -> None:
        assert not verify(raw).valid

    @settings(deadline=None)
    @given(
        value=st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["digest", "envelope", "evidence", "schema", "runs"]), inner, max_size=4
                )
            ),
        )
    )
    def test_any_json_is_an_answer(self, value: Any) -> None:
        assert not verify(json.dumps(value).encode()).valid


EVIDENCE = {
    "check": check_evidence(),
    "mutate": mutate_evidence(3),
    "interleaved": interleaved_evidence(),
    "review": review_evidence(),
}
LISTS = {
    "check": ["manifest.entries", "runs", "testNames"],
    "mutate": ["manifest.entries", "runs", "testNames", "controls", "mutations"],
    "interleaved": ["runs", "controls"],
    "review": ["manifest.entries", "runs", "testNames", "controls", "mutations", "dispatch.toolCalls"],
}
PLACES = [(kind, path) for kind, paths in LISTS.items() for path in paths]


def records(body: Any, path: str) -> list[Any]:
    for name in path.split("."):
        body = body[name]
    return body  # type: ignore[no-any-return]


class TestRecordsInAResealedFile:
    """Inner digests are made to fit as well: only the rules are left to find it."""

    @pytest.mark.parametrize(("kind", "path"), PLACES)
    def test_each_record_dropped(self, kind: str, path: str) -> None:
        for place in range(len(records(EVIDENCE[kind].as_json(), path))):

            def change(body: Any, place: int = place) -> None:
                del records(body, path)[place]
                rebind(body)

            if (kind, path, place) == ("review", "dispatch.toolCalls", 5):
                continue  # see TestWhatOnlyTheSignatureShows
            assert not verify(forged(EVIDENCE[kind], change)).valid, place

    @pytest.mark.parametrize(("kind", "path"), PLACES)
    def test_each_record_repeated(self, kind: str, path: str) -> None:
        for place in range(len(records(EVIDENCE[kind].as_json(), path))):

            def change(body: Any, place: int = place) -> None:
                found = records(body, path)
                found.insert(place, found[place])
                rebind(body)

            assert not verify(forged(EVIDENCE[kind], change)).valid, place

    @pytest.mark.parametrize(("kind", "path"), PLACES)
    def test_each_two_records_swapped(self, kind: str, path: str) -> None:
        count = len(records(EVIDENCE[kind].as_json(), path))
        for one in range(count):
            for other in range(one + 1, count):

                def change(body: Any, one: int = one, other: int = other) -> None:
                    found = records(body, path)
                    found[one], found[other] = found[other], found[one]
                    rebind(body)

                assert not verify(forged(EVIDENCE[kind], change)).valid, (one, other)

    def test_no_verdict_can_be_widened(self) -> None:
        verdicts = ["detected", "survived", "timeout", "crash", "not-applied", "not-exercised", "inconclusive"]
        for verdict in verdicts[1:]:

            def change(body: Any, verdict: str = verdict) -> None:
                body["mutations"][0]["verdict"] = verdict

            assert not verify(forged(EVIDENCE["mutate"], change)).valid, verdict

    def test_evidence_of_another_definition(self) -> None:
        """The definition of one kind of evidence is put into another, with all digests made to fit."""

        def change(body: Any) -> None:
            body["definition"] = body["definition"].replace("demo-1", "demo-2")
            rebind(body)

        for evidence in EVIDENCE.values():
            assert not verify(forged(evidence, change)).valid

    @pytest.mark.parametrize("place", [0, 1, 2, 4])
    def test_a_call_dropped_and_the_rest_numbered_anew(self, place: int) -> None:
        def change(body: Any) -> None:
            calls = body["dispatch"]["toolCalls"]
            del calls[place]
            for number, each in enumerate(calls, start=1):
                each["call"] = number

        assert not verify(forged(EVIDENCE["review"], change)).valid


def last_call_dropped(body: Any) -> None:
    """Nothing refers to a call that failed."""
    body["dispatch"]["toolCalls"].pop()


def last_mutation_dropped_with_its_runs(body: Any) -> None:
    """What is left is what a shorter plan would have written."""
    body["mutations"].pop()
    del body["runs"][-2:]


def mutations_of_two_lanes_swapped(body: Any) -> None:
    """The order of a plan is only seen within a lane."""
    first, second, *rest = body["mutations"]
    body["mutations"] = [second, first, *rest]


def history_invented(body: Any) -> None:
    body["startedAt"] = "2031-01-01T00:00:00Z"
    body["platform"]["machine"] = "aarch64"


class TestWhatOnlyTheSignatureShows:
    """Honestly: a forger who writes consistent records breaks no rule. Then the signature is what is left, and
    without one the answer is `consistent, not authentic`."""

    @pytest.mark.parametrize(
        ("kind", "change"),
        [
            ("review", last_call_dropped),
            ("mutate", last_mutation_dropped_with_its_runs),
            ("check", history_invented),
            ("interleaved", mutations_of_two_lanes_swapped),
        ],
    )
    def test_consistent_forgeries(self, kind: str, change: Callable[[Any], None]) -> None:
        raw = forged(EVIDENCE[kind], change)
        answer = verify(raw, trusted_keys=(KEY.public,))
        assert answer.valid
        assert not answer.signed
        assert answer.authenticity.startswith("consistent, not authentic")
        assert not accepted(raw)
        body: Any = copy.deepcopy(EVIDENCE[kind].as_json())
        change(body)
        envelope = json.loads(seal(EVIDENCE[kind], KEY))["envelope"]
        assert not verify(reseal(body, envelope)).valid


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict | list):
        for step in value if isinstance(value, dict) else range(len(value)):
            yield from leaves(value[step], (*path, step))
    else:
        yield path


LEAVES = {kind: list(leaves(evidence.as_json())) for kind, evidence in EVIDENCE.items()}
ENVELOPES = {kind: json.loads(seal(evidence, KEY))["envelope"] for kind, evidence in EVIDENCE.items()}
HONEST: dict[str, Evidence] = EVIDENCE


@settings(max_examples=300, deadline=None)
@given(data=st.data(), kind=st.sampled_from(sorted(EVIDENCE)))
def test_any_value_changed_under_the_honest_signature(data: st.DataObject, kind: str) -> None:
    """Whatever the value and however it is resealed: the statement is of other bytes."""
    path = data.draw(st.sampled_from(LEAVES[kind]))
    body: Any = copy.deepcopy(HONEST[kind].as_json())
    holder = body
    for step in path[:-1]:
        holder = holder[step]
    before = holder[path[-1]]
    put = data.draw(st.none() | st.booleans() | st.integers(-1, 2**54) | st.text(max_size=70) | st.just("0" * 64))
    holder[path[-1]] = put
    if (type(put), put) == (type(before), before):
        return
    try:
        raw = reseal(body, ENVELOPES[kind])
    except UnicodeEncodeError:
        return  # a lone surrogate has no bytes at all
    assert not verify(raw, trusted_keys=(KEY.public,)).valid
    assert not accepted(reseal(body))
