"""Makes the published vectors in docs/evidence/vectors/: the same bytes each time.

    PYTHONPATH=tests .venv/bin/python -m evidence.vectors

The signing key is made from a published text, so that anybody can make the vectors again. It must never be trusted.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evidence.builder import (
    FILES,
    REQUIREMENTS,
    canonical,
    check_evidence,
    definition,
    digest,
    entry,
    forged,
    mutate_evidence,
    rebind,
    reseal,
    run,
)
from evidence.reviews import review_evidence, tool_less_evidence
from firsthand.evidence import SigningKey, seal
from firsthand.evidence.keys import parse_signing_key, private_pem
from firsthand.records import Evidence, Manifest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "vectors"
KEY_TEXT = b"firsthand: published key of the evidence vectors; never trust it"
STRANGER_TEXT = b"firsthand: published key of a stranger; never trust it"


@dataclass(frozen=True)
class Vector:
    """One file and what verification must say of it, with the key of the vectors trusted."""

    name: str
    raw: bytes
    about: str
    valid: bool = False
    signed: bool = False
    where: str = ""

    def row(self) -> dict[str, Any]:
        code = "" if self.valid else "evidence_invalid"
        return {
            "file": f"{self.name}.json",
            "sha256": digest(self.raw),
            "about": self.about,
            "valid": self.valid,
            "signed": self.signed,
            "code": code,
            "where": self.where,
        }


def published_key(text: bytes = KEY_TEXT) -> SigningKey:
    seed = hashlib.sha256(text).digest()
    return parse_signing_key(private_pem(Ed25519PrivateKey.from_private_bytes(seed)), "vector key")


def vectors() -> Iterator[Vector]:
    key = published_key()
    yield Vector("check", seal(check_evidence()), "a check that passed, unsigned", valid=True)
    yield Vector("check-signed", seal(check_evidence(), key), "the same, signed", valid=True, signed=True)
    yield Vector("mutate", seal(mutate_evidence()), "two detected mutations, unsigned", valid=True)
    yield Vector("mutate-signed", seal(mutate_evidence(), key), "the same, signed", valid=True, signed=True)
    yield Vector("review-signed", seal(review_evidence(), key), "an accepted approval, signed", valid=True, signed=True)
    yield Vector(
        "tool-less-signed",
        seal(tool_less_evidence(), key),
        "an approval without tools, signed",
        valid=True,
        signed=True,
    )
    red = check_evidence(
        runs=(run(1, fails="assert 2 == 3"),), status="failed", code="review_verification_baseline_failed"
    )
    yield Vector("check-failed", seal(red), "a check that failed: valid evidence of a failure", valid=True)
    for name, path in (("nfc", "caf\u00e9.md"), ("nfd", "cafe\u0301.md")):
        about = f"a registered file whose name is spelled in {name.upper()}; the other spelling has another digest"
        yield Vector(name, seal(_with_file(path)), about, valid=True)
    yield from _shapes()
    yield from _forgeries()
    yield from _signatures(key)


def _with_file(path: str) -> Evidence:
    files = [*FILES, path]
    text = definition(
        reviewVerification={
            "files": files,
            "checks": [{"id": "value", "command": list(run(1).command.argv)}],
            "mutationPaths": ["src/value.py"],
            "timeoutMs": 60000,
        }
    )
    manifest = Manifest(entries=tuple(entry(name, FILES.get(name, REQUIREMENTS)) for name in files))
    return check_evidence(
        definition=text,
        definition_digest=digest(text.encode()),
        manifest=manifest,
        manifest_digest=manifest.canonical_digest(),
    )


def _shapes() -> Iterator[Vector]:
    good = seal(check_evidence())
    value = json.loads(good)
    passed = b'"status":"passed"'
    yield Vector("changed-byte", good.replace(b":300", b":301"), "one digit of a duration changed", where="digest")
    yield Vector("changed-digest", good.replace(b'"digest":"', b'"digest":"0', 1), "the digest grew", where="digest")
    yield Vector("trailing-byte", good + b"\n", "one line feed too many", where="file")
    yield Vector("leading-byte-order-mark", b"\xef\xbb\xbf" + good, "a byte order mark", where="file")
    yield Vector("indented", json.dumps(value, indent=2).encode() + b"\n", "the same values, indented", where="file")
    yield Vector("escaped", good.replace(b'"codex"', b'"\\u0063odex"'), "the same text, escaped", where="file")
    yield Vector("duplicate-key", good.replace(passed, b'"status":"failed",' + passed), "a key twice", where="file")
    again = b'"\\u0073tatus":"failed",'
    yield Vector(
        "duplicate-key-escaped", good.replace(passed, again + passed), "a key twice, once escaped", where="file"
    )
    yield Vector("float", good.replace(b":300,", b":300.0,"), "a number with a fraction", where="file")
    yield Vector("exponent", good.replace(b":300,", b":3e2,"), "a number with an exponent", where="file")
    yield Vector("not-a-number", good.replace(b":300,", b":NaN,"), "NaN", where="file")
    yield Vector("unsafe-integer", good.replace(b":300,", b":9007199254740992,"), "2^53", where="file")
    yield Vector(
        "minus-zero", good.replace(b'"leftovers":0', b'"leftovers":-0'), "a second spelling of 0", where="file"
    )
    yield Vector("too-deep", b'{"a":' * 17 + b"1" + b"}" * 17 + b"\n", "17 levels", where="file")
    yield _resealed("extra-field", check_evidence(), lambda body: body.update(extra=1), "a field too many", "extra")
    yield _resealed(
        "missing-field",
        check_evidence(),
        lambda body: body["runs"][0]["command"]["outcome"].pop("leftovers"),
        "a field that has a default left out",
        "evidence",
    )
    yield _resealed(
        "another-version",
        check_evidence(),
        lambda body: body.update(schemaVersion=2),
        "schema version 2",
        "evidence.schemaVersion",
    )


def _resealed(name: str, evidence: Evidence, change: Callable[[Any], Any], about: str, where: str) -> Vector:
    return Vector(name, forged(evidence, change), f"resealed: {about}", where=where)


def _forgeries() -> Iterator[Vector]:
    def definition_swapped(body: Any) -> None:
        body["definition"] = definition(maxRounds=6)

    def definition_rebound(body: Any) -> None:
        body["definition"] = definition(runId="demo-2")
        rebind(body)

    def widened(body: Any) -> None:
        body["runs"][3] = body["runs"][4] | {"run": 4, "purpose": "mutated"}

    for name, change, about, where in (
        ("dropped-run", lambda body: body["runs"].pop(0), "the first run dropped", "runs[0].run"),
        ("repeated-run", lambda body: body["runs"].insert(1, body["runs"][0]), "a run twice", "runs[1].run"),
        ("reordered-runs", lambda body: body["runs"].reverse(), "the runs backwards", "runs[0].run"),
        ("dropped-mutation", lambda body: body["mutations"].pop(), "a mutation dropped", "runs[5]"),
        (
            "repeated-mutation",
            lambda body: body["mutations"].append(body["mutations"][0]),
            "a mutation twice",
            "mutations[2].mutated",
        ),
        ("reordered-mutations", lambda body: body["mutations"].reverse(), "mutations swapped", "mutations[1]"),
        ("widened-verdict", widened, "the mutated run was green, the verdict says detected", "mutations[0].verdict"),
        ("dropped-control", lambda body: body["controls"].clear(), "the control dropped", "runs[1]"),
        ("swapped-definition", definition_swapped, "another definition, old digest", "definitionDigest"),
        ("rebound-definition", definition_rebound, "another definition with its own digest", "runId"),
    ):
        yield _resealed(name, mutate_evidence(), change, about, where)
    yield _resealed(
        "widened-status",
        check_evidence(runs=(run(1, fails="assert 2 == 3"),)),
        lambda body: None,
        "the check failed, the status says passed",
        "status",
    )
    yield _resealed(
        "rejection-made-approval",
        review_evidence(),
        lambda body: body["dispatch"]["judgement"].update(verdict="rejected"),
        "the reviewer rejected, the status says passed",
        "status",
    )


def _signatures(key: SigningKey) -> Iterator[Vector]:
    def invented(body: Any) -> None:
        body["startedAt"] = "2026-02-02T02:02:02Z"

    yield Vector(
        "invented",
        forged(mutate_evidence(), invented),
        "resealed: a forgery that keeps every rule; without a signature nothing can tell",
        valid=True,
    )
    stranger = published_key(STRANGER_TEXT)
    yield Vector(
        "signed-by-a-stranger",
        seal(mutate_evidence(), stranger),
        "signed by a key that is not trusted: consistent, not authentic",
        valid=True,
    )
    value = json.loads(seal(mutate_evidence(), key))
    body: Any = copy.deepcopy(value["evidence"])
    invented(body)
    yield Vector(
        "invented-under-a-signature",
        reseal(body, value["envelope"]),
        "the same forgery under the honest evidence's signature",
        where="envelope.payload",
    )
    foreign = json.loads(seal(mutate_evidence(), stranger))
    foreign["envelope"]["signatures"][0]["keyid"] = key.public.key_id
    yield Vector(
        "borrowed-key-id",
        canonical(foreign) + b"\n",
        "a stranger's signature under the trusted key's id",
        where="envelope.signatures[0].sig",
    )
    twice = json.loads(seal(mutate_evidence(), key))
    twice["envelope"]["signatures"] *= 2
    yield Vector("two-signatures", canonical(twice) + b"\n", "the signature twice", where="envelope.signatures")


def index() -> bytes:
    """The list of all vectors, for people and for other implementations."""
    table = {
        "note": "Verify each file with key.pub.pem as the one trusted key. That key is published: never trust it.",
        "key": "key.pub.pem",
        "keyId": published_key().public.key_id,
        "vectors": [vector.row() for vector in vectors()],
    }
    return json.dumps(table, indent=2).encode() + b"\n"


def main() -> None:
    for old in FOLDER.glob("*.json"):
        old.unlink()
    for vector in vectors():
        (FOLDER / f"{vector.name}.json").write_bytes(vector.raw)
    (FOLDER / "index.json").write_bytes(index())
    (FOLDER / "key.pub.pem").write_text(published_key().public.pem)


if __name__ == "__main__":
    main()
