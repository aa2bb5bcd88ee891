from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence.builder import canonical, check_evidence, digest, mutate_evidence, reseal
from firsthand.evidence.errors import EvidenceError
from firsthand.evidence.sealing import LIMIT_BYTES, digest_of, open_sealed, seal
from firsthand.evidence.storing import read_sealed, write_sealed


def refused(raw: bytes, reason: str | None = None, where: str | None = None) -> None:
    with pytest.raises(EvidenceError, match=reason) as caught:
        open_sealed(raw)
    assert caught.value.code == "evidence_invalid"
    assert caught.value.next_step
    if where is not None:
        assert caught.value.where == where


class TestSeal:
    def test_the_file_is_the_documented_layout(self) -> None:
        for evidence in (check_evidence(), mutate_evidence()):
            assert seal(evidence) == reseal(evidence.as_json())

    def test_the_digest_is_over_the_bytes_as_they_stand(self) -> None:
        raw = seal(check_evidence())
        stored = raw[raw.index(b'"evidence":') + len(b'"evidence":') : raw.rindex(b',"schema":')]
        assert digest_of(raw) == digest(stored) == json.loads(raw)["digest"]
        assert open_sealed(raw).stored == stored

    def test_it_is_one_line_of_plain_json(self) -> None:
        raw = seal(check_evidence(run_id="line\nbreak\u2028\u0085"))
        assert raw.count(b"\n") == 1
        assert raw.endswith(b"}\n")
        assert json.loads(raw)["evidence"]["runId"] == "line\nbreak\u2028\u0085"

    def test_what_was_sealed_is_opened(self) -> None:
        evidence = mutate_evidence()
        opened = open_sealed(seal(evidence))
        assert opened.evidence == evidence
        assert opened.envelope is None

    def test_a_lone_surrogate_is_refused(self) -> None:
        with pytest.raises(EvidenceError, match="no canonical JSON form"):
            seal(check_evidence(run_id="\ud800"))

    def test_nfc_and_nfd_stay_different(self) -> None:
        nfc, nfd = (seal(check_evidence(run_id=name)) for name in ("caf\u00e9", "cafe\u0301"))
        assert digest_of(nfc) != digest_of(nfd)
        assert open_sealed(nfd).evidence.run_id == "cafe\u0301"

    def test_more_than_can_be_verified_is_not_sealed(self) -> None:
        with pytest.raises(EvidenceError, match="at most 67108864 can be verified"):
            seal(check_evidence(host_version="x" * LIMIT_BYTES))

    @settings(deadline=None)
    @given(text=st.text(), number=st.integers(min_value=0, max_value=2**53 - 1))
    def test_any_text_and_number_survive(self, text: str, number: int) -> None:
        evidence = check_evidence(run_id=text, round=number, voided=(text,))
        raw = seal(evidence)
        assert raw == reseal(evidence.as_json())
        assert open_sealed(raw).evidence == evidence


def body_with(change: Callable[[Any], None]) -> bytes:
    body: Any = copy.deepcopy(check_evidence().as_json())
    change(body)
    return reseal(body)


def drop(name: str) -> Callable[[Any], None]:
    return lambda body: body.pop(name)


class TestShape:
    """Each refusal is tried on a file that is resealed, so that no digest can be what gives it away."""

    raw = seal(check_evidence())

    def test_the_untouched_file_opens(self) -> None:
        open_sealed(self.raw)
        open_sealed(body_with(lambda body: None))

    def test_trailing_and_leading_bytes(self) -> None:
        refused(self.raw + b"{}", "not JSON", "file")
        for extra in (self.raw + b"\n", self.raw + b" ", b" " + self.raw, self.raw[:-1], self.raw[:-1] + b"\r\n"):
            refused(extra, "one canonical spelling", "file")
        refused(self.raw + b"\0", "not JSON", "file")

    def test_a_byte_order_mark(self) -> None:
        refused(b"\xef\xbb\xbf" + self.raw, "byte order mark")

    def test_other_spellings(self) -> None:
        value = json.loads(self.raw)
        refused(json.dumps(value).encode() + b"\n", "one canonical spelling")
        refused(json.dumps(value, indent=2).encode(), "one canonical spelling")
        backwards = dict(reversed(value.items()))
        refused(json.dumps(backwards, separators=(",", ":")).encode() + b"\n", "one canonical spelling")
        refused(self.raw.replace(b'"codex"', b'"\\u0063odex"'), "one canonical spelling")

    def test_duplicate_keys(self) -> None:
        for again in (b'"status":"failed"', b'"\\u0073tatus":"failed"', b'"status":"passed"'):
            refused(self.raw.replace(b'"status":"passed"', again + b',"status":"passed"'), "duplicate key 'status'")
        refused(self.raw.replace(b'{"digest"', b'{"digest":"","digest"'), "duplicate key 'digest'")

    def test_numbers_that_are_not_safe_integers(self) -> None:
        for spelling in (b"1.0", b"1e0", b"1e999", b"NaN", b"Infinity", b"-0", b"9007199254740992", b"9" * 10_000):
            refused(self.raw.replace(b'"durationMs":300', b'"durationMs":' + spelling))
        assert b'"durationMs":300' in self.raw

    def test_depth(self) -> None:
        refused(b"[" * 100_000 + b"]" * 100_000, "nested deeper")
        refused(b'{"a":' * 17 + b"1" + b"}" * 17, "nested deeper")

    def test_size(self) -> None:
        refused(b" " * (LIMIT_BYTES + 1), "at most 67108864 are accepted")

    @pytest.mark.parametrize("raw", [b"", b"null", b"[]", b"{}", b"\xff", b'"text"', b"1", b"{", b"\0" * 100])
    def test_garbage(self, raw: bytes) -> None:
        refused(raw)

    @pytest.mark.parametrize("version", [0, 2, True, "1", None])
    def test_another_schema_version_is_named_before_anything_else(self, version: object) -> None:
        def change(body: Any) -> None:
            body.clear()
            body["schemaVersion"] = version

        refused(body_with(change), f"schema version {version!r}, .* only 1; .* never reinterpreted")

    def test_another_layout(self) -> None:
        refused(self.raw.replace(b"evidence/v1", b"evidence/v2"), "reads only https", "schema")

    def test_extra_fields(self) -> None:
        refused(body_with(lambda body: body.update(extra=1)), "Extra inputs", "extra")
        refused(body_with(lambda body: body["runs"][0].update(extra=1)), "Extra inputs", "runs.0.extra")
        value = json.loads(self.raw) | {"extra": 1}
        refused(canonical(value) + b"\n", "Extra inputs", "extra")

    def test_missing_fields_even_with_a_default(self) -> None:
        for name in json.loads(self.raw)["evidence"]:
            refused(body_with(drop(name)))
        refused(body_with(lambda body: body["runs"][0]["command"]["outcome"].pop("leftovers")), "missing or in another")
        refused(body_with(lambda body: body["runs"][0]["command"]["outcome"].pop("signal")), "missing or in another")

    def test_fields_under_another_name(self) -> None:
        for old, new in (("runId", "run_id"), ("runId", "RunId"), ("startedAt", "startedat")):
            refused(body_with(lambda body: body.update({new: body.pop(old)})))  # noqa: B023 - called at once
        renamed = self.raw.replace(b'"schema":', b'"schemaName":')
        refused(renamed)
        refused(renamed.replace(b'"schemaName":', b'"schema_name":'))

    def test_wrong_types(self) -> None:
        changes: list[Callable[[Any], None]] = [
            lambda body: body.update(round="1"),
            lambda body: body.update(round=True),
            lambda body: body.update(round=-1),
            lambda body: body.update(kind="other"),
            lambda body: body.update(nonce="D" * 64),
            lambda body: body.update(nonce="d" * 64 + "\n"),
            lambda body: body.update(runs={}),
            lambda body: body.update(runs=None),
            lambda body: body["runs"][0]["tests"].update(complete=1),
            lambda body: body["runs"][0]["command"]["outcome"].update(kind="signalled"),
            lambda body: body["manifest"]["entries"][0].update(state="missing"),
        ]
        for change in changes:
            refused(body_with(change))

    def test_a_wrong_envelope(self) -> None:
        body = check_evidence().as_json()
        envelopes: list[Any] = [{}, [], "x", {"payload": "", "payloadType": "text/plain", "signatures": []}]
        for envelope in envelopes:
            refused(reseal(body, envelope))


class TestFile:
    def test_it_is_private_and_exact(self, tmp_path: Path) -> None:
        raw = seal(check_evidence())
        before = os.umask(0)
        try:
            write_sealed(tmp_path / "result.json", raw)
        finally:
            os.umask(before)
        assert (tmp_path / "result.json").stat().st_mode & 0o7777 == 0o600
        assert read_sealed(tmp_path / "result.json") == raw
        assert os.listdir(tmp_path) == ["result.json"]

    def test_nothing_is_written_over_unasked(self, tmp_path: Path) -> None:
        path = tmp_path / "result.json"
        path.write_bytes(b"older")
        with pytest.raises(EvidenceError, match="never written over"):
            write_sealed(path, b"newer")
        assert path.read_bytes() == b"older"
        write_sealed(path, b"newer", replace=True)
        assert path.read_bytes() == b"newer"
        assert os.listdir(tmp_path) == ["result.json"]

    def test_a_link_is_never_followed(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.write_bytes(b"precious")
        path = tmp_path / "result.json"
        path.symlink_to(outside)
        with pytest.raises(EvidenceError, match="never written over"):
            write_sealed(path, b"newer")
        write_sealed(path, b"newer", replace=True)
        assert outside.read_bytes() == b"precious"
        assert not path.is_symlink()

    def test_an_absent_folder_is_told(self, tmp_path: Path) -> None:
        with pytest.raises(EvidenceError, match="No such file"):
            write_sealed(tmp_path / "absent" / "result.json", b"x")

    def test_a_failed_write_leaves_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(EvidenceError, match="No space left"):
            write_sealed(tmp_path / "result.json", b"x")
        assert os.listdir(tmp_path) == []

    def test_reading_is_bounded_before_a_byte_is_read(self, tmp_path: Path) -> None:
        sparse = tmp_path / "sparse"
        with sparse.open("wb") as stream:
            stream.truncate(10 * 1024**3)
        with pytest.raises(EvidenceError, match="10737418240 bytes, at most"):
            read_sealed(sparse)

    def test_only_regular_files_are_read(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "fifo")
        for path in (tmp_path / "fifo", tmp_path, Path(os.devnull)):
            with pytest.raises(EvidenceError, match="not a regular file"):
                read_sealed(path)
        with pytest.raises(EvidenceError, match="No such file"):
            read_sealed(tmp_path / "absent")
