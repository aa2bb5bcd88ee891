"""The sealed file: one line of canonical JSON that holds the evidence, its digest and, if signed, the envelope.

    {"digest":"…","envelope":null,"evidence":{…},"schema":"https://firsthand.dev/evidence/v1"}⏎

Source: the contract, Evidence. The stored bytes are the RFC 8785 form of the member `evidence`, exactly as they stand
in the file; the digest is SHA-256 over them. The whole file is canonical too and ends in one line feed, so a value has
one spelling, and a byte changed anywhere is a byte out of place. An envelope can be added without touching the digest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field, ValidationError

from firsthand.canonical import (
    DEFAULT_LIMIT_BYTES,
    JSONValue,
    StrictJSONError,
    canonical_bytes,
    parse_strict,
    sha256_hex,
)
from firsthand.evidence.envelope import Envelope
from firsthand.evidence.errors import EvidenceError
from firsthand.evidence.statement import EVIDENCE_TYPE, statement_bytes
from firsthand.records import SCHEMA_VERSION, Digest, Evidence, Record

if TYPE_CHECKING:
    from firsthand.evidence.keys import SigningKey

LIMIT_BYTES: Final = DEFAULT_LIMIT_BYTES
"""A longer file is refused unread."""

LIMIT_DEPTH: Final = 16
"""Deepest nesting that is parsed; schema version 1 needs 8."""


class SealedFile(Record):
    """Everything in the file but the evidence itself."""

    digest: Digest
    """SHA-256 over the exact stored bytes of `evidence`."""
    envelope: Envelope | None
    """The signature; null in an unsigned file."""
    schema_name: Literal["https://firsthand.dev/evidence/v1"] = Field(alias="schema")
    """On the wire `schema`: names this layout together with schema version 1 of the evidence."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A file whose shape is right; nothing of what it says has been checked yet.

    Attributes:
        stored: the exact bytes of the member `evidence`.
        digest: the digest that the file claims for them.
        envelope: the signature, not verified.
        evidence: the records, parsed from `stored`.
    """

    stored: bytes
    digest: str
    envelope: Envelope | None
    evidence: Evidence


def seal(evidence: Evidence, key: SigningKey | None = None) -> bytes:
    """The exact bytes of the sealed file, signed when a key is given. No side effects.

    Raises:
        EvidenceError: a text holds a lone surrogate, a number is not safe, or the file would be longer than
            `LIMIT_BYTES` and so could never be verified.
    """
    try:
        stored = canonical_bytes(evidence.as_json())
    except (StrictJSONError, ValueError) as error:
        raise EvidenceError(
            f"the evidence has no canonical JSON form: {error}",
            where="evidence",
            next_step="report this as a fault of the part that recorded the value",
        ) from error
    digest = sha256_hex(stored)
    envelope = None if key is None else key.envelope(statement_bytes(evidence, digest))
    raw = _layout(stored, digest, envelope)
    if len(raw) > LIMIT_BYTES:
        raise EvidenceError(
            f"the sealed file would have {len(raw)} bytes, at most {LIMIT_BYTES} can be verified",
            where="evidence",
            next_step="split the plan into smaller ones",
        )
    return raw


def open_sealed(raw: bytes) -> Opened:
    """Read a sealed file strictly; nothing is filled in, skipped, normalised or migrated.

    Raises:
        EvidenceError: for every deviation from the one spelling of schema version 1, with the place and the reason.
    """
    try:
        value = parse_strict(raw, limit_bytes=LIMIT_BYTES, limit_depth=LIMIT_DEPTH)
    except StrictJSONError as error:
        raise _shape(str(error), "file") from error
    if not isinstance(value, dict):
        raise _shape("not a JSON object", "file")
    body = value.pop("evidence", None)
    _refuse_other_versions(value, body)
    try:
        frame = SealedFile.model_validate_json(canonical_bytes(value))
        stored = _spelled(body)
        evidence = Evidence.model_validate_json(stored)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "file"
        raise _shape(first["msg"], where) from error
    # Equality with what the records say again refuses fields that were left out for a default to fill in.
    if evidence.as_json() != body:
        raise _shape("a field is missing or in another spelling than schema version 1 writes it", "evidence")
    if _layout(stored, frame.digest, frame.envelope) != raw:
        raise _shape("not the one canonical spelling: RFC 8785 on one line, ended by one line feed", "file")
    return Opened(stored=stored, digest=frame.digest, envelope=frame.envelope, evidence=evidence)


def digest_of(raw: bytes) -> str:
    """The digest of the evidence in a sealed file, computed from its exact stored bytes.

    Raises:
        EvidenceError: the bytes are no sealed file.
    """
    return sha256_hex(open_sealed(raw).stored)


def _layout(stored: bytes, digest: str, envelope: Envelope | None) -> bytes:
    """The whole file. Its member names stand in canonical order, so the parts only need joining."""
    parts = (
        b'{"digest":',
        canonical_bytes(digest),
        b',"envelope":',
        canonical_bytes(None if envelope is None else envelope.as_json()),
        b',"evidence":',
        stored,
        b',"schema":',
        canonical_bytes(EVIDENCE_TYPE),
        b"}\n",
    )
    return b"".join(parts)


def _spelled(body: JSONValue) -> bytes:
    """The canonical spelling of a body that passed the strict parser, if all its keys are ASCII.

    Several times faster than the general form. Any field name of schema version 1 is ASCII, where the order by code
    points is the order that RFC 8785 wants; a body with another key is refused for that key right after this.
    """
    return json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def _refuse_other_versions(frame: dict[str, JSONValue], body: JSONValue) -> None:
    name = frame.get("schema")
    if name != EVIDENCE_TYPE:
        raise _shape(f"schema is {_shown(name)}, this version reads only {EVIDENCE_TYPE}", "schema")
    if not isinstance(body, dict):
        raise _shape("evidence is missing or not an object", "evidence")
    version = body.get("schemaVersion")
    if isinstance(version, bool) or version != SCHEMA_VERSION:
        raise _shape(
            f"schema version {_shown(version)}, this version reads only {SCHEMA_VERSION}; "
            "evidence is never reinterpreted or migrated",
            "evidence.schemaVersion",
        )


def _shown(value: JSONValue) -> str:
    return repr(value)[:60]


def _shape(message: str, where: str) -> EvidenceError:
    return EvidenceError(
        message, where=where, next_step="take the file as firsthand wrote it; what was changed can't be mended"
    )
