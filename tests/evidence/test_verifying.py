"""Honest evidence, digests and signatures: what each answer is and when it is given."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from typing import Any

import pytest

from evidence.builder import (
    canonical,
    check_evidence,
    definition,
    digest,
    forged,
    interleaved_evidence,
    mutate_evidence,
    reseal,
    run,
)
from evidence.judging import found
from evidence.reviews import review_evidence, tool_less_evidence
from firsthand.evidence import load_signing_key, new_key, seal, verify
from firsthand.evidence.keys import SigningKey
from firsthand.records import Evidence


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    path = tmp_path_factory.mktemp("keys") / "key.pem"
    new_key(path)
    return load_signing_key(path)


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    path = tmp_path_factory.mktemp("stranger") / "key.pem"
    new_key(path)
    return load_signing_key(path)


class TestHonestEvidence:
    @pytest.mark.parametrize(
        "evidence",
        [
            check_evidence(),
            mutate_evidence(),
            mutate_evidence(5),
            interleaved_evidence(),
            review_evidence(),
            tool_less_evidence(),
        ],
        ids=["check", "mutate", "more", "interleaved", "review", "tool-less"],
    )
    def test_it_is_valid_and_not_authentic(self, evidence: Evidence) -> None:
        answer = verify(seal(evidence))
        assert answer.problems == ()
        assert (answer.valid, answer.stale, answer.signed) == (True, None, False)
        assert answer.authenticity.startswith("consistent, not authentic: unsigned")
        assert answer.evidence == evidence

    def test_failure_is_valid_too(self) -> None:
        red = check_evidence(
            runs=(run(1, fails="assert 2 == 3"),), status="failed", code="review_verification_baseline_failed"
        )
        assert verify(seal(red)).valid

    def test_the_answer_as_json(self) -> None:
        raw = seal(check_evidence())
        answer = verify(raw).as_json()
        assert answer["valid"] is True
        assert answer["stale"] is None
        assert answer["signed"] is False
        assert answer["problems"] == []
        bad = verify(raw + b" ").as_json()
        assert bad["problems"] == [
            {"code": "evidence_invalid", "where": "file", "message": verify(raw + b" ").problems[0].message}
        ]


class TestShapeAndDigests:
    def test_bad_shape_is_an_answer(self) -> None:
        answer = found(b"{}", "schema")
        assert answer.digest is None

    def test_a_digest_that_does_not_fit(self) -> None:
        raw = seal(check_evidence())
        assert b'"durationMs":300' in raw
        found(raw.replace(b'"durationMs":300', b'"durationMs":301'), "digest", "changed after sealing")
        wrong = raw.replace(digest(canonical(check_evidence().as_json())).encode(), b"0" * 64)
        assert wrong != raw
        found(wrong, "digest")

    def test_inner_digests(self) -> None:
        def definition_changed(body: Any) -> None:
            body["definition"] = definition(maxRounds=6)

        def manifest_changed(body: Any) -> None:
            body["manifest"]["entries"][0]["links"] = 2

        def order_changed(body: Any) -> None:
            body["manifest"]["entries"].reverse()

        found(forged(check_evidence(), definition_changed), "definitionDigest")
        found(forged(check_evidence(), manifest_changed), "manifestDigest")
        found(forged(check_evidence(), order_changed), "manifestDigest")


class TestSignature:
    def test_a_trusted_key_makes_it_authentic(self, key: SigningKey, stranger: SigningKey) -> None:
        for evidence in (check_evidence(), mutate_evidence(), review_evidence(), tool_less_evidence()):
            raw = seal(evidence, key)
            answer = verify(raw, trusted_keys=(stranger.public, key.public), require_signature=True)
            assert answer.problems == ()
            assert (answer.valid, answer.signed, answer.key_id) == (True, True, key.public.key_id)
            assert answer.authenticity == f"authentic: signed by the trusted key {key.public.key_id}"
            assert answer.digest == verify(seal(evidence)).digest

    def test_an_untrusted_key_does_not(self, key: SigningKey, stranger: SigningKey) -> None:
        raw = seal(check_evidence(), key)
        for trusted in ((), (stranger.public,)):
            answer = verify(raw, trusted_keys=trusted)
            assert (answer.valid, answer.signed) == (True, False)
            assert "not among the trusted keys" in answer.authenticity
            found(raw, "envelope.signatures[0]", "not trusted", trusted_keys=trusted, require_signature=True)

    def test_a_required_signature_must_be_there(self, key: SigningKey) -> None:
        found(seal(check_evidence()), "envelope", "unsigned", trusted_keys=(key.public,), require_signature=True)

    def test_a_resealed_forgery_that_keeps_the_rules_is_caught_by_the_signature_alone(self, key: SigningKey) -> None:
        """Nothing but the key can tell: a forger who knows the rules writes consistent evidence of what never ran."""
        honest = seal(mutate_evidence(), key)
        envelope = json.loads(honest)["envelope"]

        def invented(body: Any) -> None:
            body["startedAt"] = "2026-02-02T02:02:02Z"
            for each in body["runs"]:
                text = "1 passed in 0.02s\n"
                each["command"]["stdout"].update(head=text, totalBytes=len(text), sha256=digest(text.encode()))

        unsigned = verify(forged(mutate_evidence(), invented), trusted_keys=(key.public,))
        assert unsigned.valid
        assert not unsigned.signed
        assert unsigned.authenticity.startswith("consistent, not authentic")
        body = mutate_evidence().as_json()
        invented(body)
        found(reseal(body, envelope), "envelope.payload", trusted_keys=(key.public,))
        found(reseal(body, envelope), "envelope.payload")

    def test_a_signature_for_other_evidence_does_not_carry_over(self, key: SigningKey) -> None:
        envelope = json.loads(seal(check_evidence(), key))["envelope"]
        found(reseal(check_evidence(nonce="f" * 64).as_json(), envelope), "envelope.payload")
        found(reseal(mutate_evidence().as_json(), envelope), "envelope.payload")

    def test_a_signature_under_a_borrowed_key_id(self, key: SigningKey, stranger: SigningKey) -> None:
        value = json.loads(seal(check_evidence(), stranger))
        value["envelope"]["signatures"][0]["keyid"] = key.public.key_id
        found(
            canonical(value) + b"\n",
            "envelope.signatures[0].sig",
            trusted_keys=(key.public, stranger.public),
        )

    def test_other_forms_of_an_envelope(self, key: SigningKey) -> None:
        value = json.loads(seal(check_evidence(), key))
        signature = value["envelope"]["signatures"][0]
        forms: list[dict[str, Any]] = [
            {"signatures": []},
            {"signatures": [signature, signature]},
            {"signatures": [signature | {"sig": signature["sig"][:-4]}]},
            {"signatures": [signature | {"sig": signature["sig"].rstrip("=")}]},
            {"signatures": [signature | {"sig": "-_" + signature["sig"][2:]}]},
            {"signatures": [signature | {"cert": ""}]},
            {"signatures": [signature | {"keyid": ""}]},
            {"payload": value["envelope"]["payload"] + "\n"},
            {"payload": "ä"},
            {"payloadType": "application/json"},
            {"extra": 1},
        ]
        for form in forms:
            answer = verify(
                canonical(value | {"envelope": value["envelope"] | form}) + b"\n", trusted_keys=(key.public,)
            )
            assert not answer.valid, form
            assert answer.problems[0].where.startswith("envelope"), form


def test_verification_imports_no_sandbox_code() -> None:
    program = "import sys, firsthand.evidence; print([m for m in sys.modules if m.startswith('firsthand.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in ast.literal_eval(done.stdout)}
    assert rooms == {"canonical", "definition", "errors", "evidence", "files", "records", "rules"}
