"""Sealed evidence: stored bytes, signatures, keys and offline verification. No sandbox code is imported here."""

from firsthand.evidence.envelope import Envelope, Signature, pre_authentication_encoding
from firsthand.evidence.errors import EvidenceError, KeyFileError
from firsthand.evidence.keyfiles import (
    load_public_key,
    load_signing_key,
    new_key,
    show_key,
    trust_key,
    trusted_keys,
)
from firsthand.evidence.keys import PublicKey, SigningKey
from firsthand.evidence.package import package_digest
from firsthand.evidence.sealing import LIMIT_BYTES, SealedFile, digest_of, open_sealed, seal
from firsthand.evidence.statement import EVIDENCE_TYPE, PAYLOAD_TYPE, STATEMENT_TYPE, statement_bytes
from firsthand.evidence.storing import read_sealed, write_sealed
from firsthand.evidence.verification import Verification
from firsthand.evidence.verifying import verify

__all__ = [
    "EVIDENCE_TYPE",
    "LIMIT_BYTES",
    "PAYLOAD_TYPE",
    "STATEMENT_TYPE",
    "Envelope",
    "EvidenceError",
    "KeyFileError",
    "PublicKey",
    "SealedFile",
    "Signature",
    "SigningKey",
    "Verification",
    "digest_of",
    "load_public_key",
    "load_signing_key",
    "new_key",
    "open_sealed",
    "package_digest",
    "pre_authentication_encoding",
    "read_sealed",
    "seal",
    "show_key",
    "statement_bytes",
    "trust_key",
    "trusted_keys",
    "verify",
    "write_sealed",
]
