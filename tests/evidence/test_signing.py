"""The signature, by other people's programs."""

from __future__ import annotations

import base64
import copy
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined] # it lacks the re-export's mark

from evidence.builder import FILES, canonical, check_evidence, digest, entry, mutate_evidence
from evidence.reviews import review_evidence
from evidence.vectors import STRANGER_TEXT, published_key
from firsthand.evidence import PublicKey, pre_authentication_encoding, seal
from firsthand.records import Manifest

KEY = published_key()
RAW = seal(mutate_evidence(), KEY)
SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "sigstore-verify.mjs"


def envelope_of(raw: bytes) -> dict[str, Any]:
    return json.loads(raw)["envelope"]  # type: ignore[no-any-return]


def altered(raw: bytes) -> list[dict[str, Any]]:
    """The envelope with its payload, its type and its signature changed, one at a time."""
    envelope = envelope_of(raw)
    payload = base64.b64decode(envelope["payload"]).replace(b"demo-1", b"demo-2")
    signature = bytearray(base64.b64decode(envelope["signatures"][0]["sig"]))
    signature[10] ^= 1
    other = envelope["signatures"][0] | {"sig": base64.b64encode(bytes(signature)).decode()}
    envelopes = [
        envelope | {"payload": base64.b64encode(payload).decode()},
        envelope | {"payloadType": "application/json"},
        envelope | {"signatures": [other]},
    ]
    return [copy.deepcopy(each) for each in envelopes]  # securesystemslib takes its argument apart


def test_the_statement_is_the_documented_one() -> None:
    evidence = review_evidence()
    envelope = envelope_of(seal(evidence, KEY))
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    payload = base64.b64decode(envelope["payload"])
    statement = json.loads(payload)
    assert canonical(statement) == payload
    assert statement == {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": path, "digest": {"sha256": digest(data)}} for path, data in FILES.items()],
        "predicateType": "https://firsthand.dev/evidence/v1",
        "predicate": {
            "evidence": {"sha256": digest(canonical(evidence.as_json()))},
            "kind": "review",
            "runId": "demo-1",
            "stage": "final",
            "round": 1,
            "nonce": "d" * 64,
            "status": "passed",
            "code": "",
            "definitionDigest": evidence.definition_digest,
            "manifestDigest": evidence.manifest_digest,
            "hostVersion": "0.1.0",
        },
    }


def test_missing_files_are_no_subjects_and_there_is_always_one() -> None:
    for present, names in (([], ["firsthand:manifest"]), (["src/value.py"], ["src/value.py"])):
        manifest = Manifest(entries=tuple(entry(p, data if p in present else None) for p, data in FILES.items()))
        evidence = check_evidence(manifest=manifest, manifest_digest=manifest.canonical_digest())
        statement = json.loads(base64.b64decode(envelope_of(seal(evidence, KEY))["payload"]))
        assert [subject["name"] for subject in statement["subject"]] == names


def test_the_encoding_that_dsse_specifies() -> None:
    assert (
        pre_authentication_encoding("http://example.com/HelloWorld", b"hello world")
        == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert pre_authentication_encoding("ä", b"\0\n") == b"DSSEv1 2 \xc3\xa4 2 \0\n"


def test_the_signature_is_deterministic() -> None:
    assert seal(mutate_evidence(), KEY) == RAW


class TestSecuresystemslib:
    def key(self, public: PublicKey) -> SSlibKey:
        loaded: Any = load_pem_public_key(public.pem.encode())
        return SSlibKey.from_crypto(loaded, keyid=public.key_id)

    def test_it_accepts_ours(self) -> None:
        for evidence in (check_evidence(), mutate_evidence(), review_evidence()):
            envelope = Envelope.from_dict(envelope_of(seal(evidence, KEY)))
            accepted = envelope.verify([self.key(KEY.public)], 1)
            assert list(accepted) == [KEY.public.key_id]

    def test_it_refuses_what_was_changed(self) -> None:
        for envelope in altered(RAW):
            with pytest.raises(VerificationError):
                Envelope.from_dict(envelope).verify([self.key(KEY.public)], 1)

    def test_it_refuses_another_key(self) -> None:
        with pytest.raises(VerificationError):
            Envelope.from_dict(envelope_of(RAW)).verify([self.key(published_key(STRANGER_TEXT).public)], 1)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not on PATH")
class TestOpenssl:
    def verified(self, folder: Path, envelope: dict[str, Any]) -> bool:
        payload = base64.b64decode(envelope["payload"])
        (folder / "pae").write_bytes(pre_authentication_encoding(envelope["payloadType"], payload))
        (folder / "sig").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
        (folder / "pub").write_text(KEY.public.pem)
        openssl = shutil.which("openssl")
        assert openssl is not None
        done = subprocess.run(
            [openssl, "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", "pub", "-in", "pae", "-sigfile", "sig"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode == 0 and "Verified Successfully" in done.stdout

    def test_it_accepts_ours_and_refuses_what_was_changed(self, tmp_path: Path) -> None:
        assert self.verified(tmp_path, envelope_of(RAW))
        for envelope in altered(RAW):
            assert not self.verified(tmp_path, envelope)


MODULES = os.environ.get("FIRSTHAND_SIGSTORE_MODULES", "")


@pytest.mark.skipif(
    not MODULES or shutil.which("node") is None,
    reason="FIRSTHAND_SIGSTORE_MODULES names no folder with npm's @sigstore/verify in its node_modules, or no node",
)
class TestSigstore:
    def run(self, path: Path, key: Path) -> subprocess.CompletedProcess[str]:
        node = shutil.which("node")
        assert node is not None
        return subprocess.run(
            [node, str(SCRIPT), str(path), str(key)],
            cwd=MODULES,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def test_it_accepts_ours_and_refuses_what_was_changed(self, tmp_path: Path) -> None:
        key = tmp_path / "key.pub.pem"
        key.write_text(KEY.public.pem)
        good = tmp_path / "good.json"
        good.write_bytes(RAW)
        done = self.run(good, key)
        assert (done.returncode, done.stdout) == (0, f"verified: {json.loads(RAW)['digest']}\n"), done.stderr
        key.write_text(published_key(STRANGER_TEXT).public.pem)
        assert self.run(good, key).returncode == 1
        key.write_text(KEY.public.pem)
        bad = tmp_path / "bad.json"
        for envelope in altered(RAW):
            bad.write_bytes(canonical(json.loads(RAW) | {"envelope": envelope}) + b"\n")
            assert self.run(bad, key).returncode == 1
        bad.write_bytes(RAW.replace(b'"durationMs":300', b'"durationMs":301'))
        assert "another digest" in self.run(bad, key).stderr
