"""The DSSE envelope: a payload, its type and one signature over both."""

from __future__ import annotations

import base64
import binascii
from typing import Literal

from pydantic import field_validator

from firsthand.records import Digest, Record


class Signature(Record):
    """One Ed25519 signature."""

    keyid: Digest
    """SHA-256 of the public key's DER SubjectPublicKeyInfo: a claim that only picks a key to try."""
    sig: str
    """Standard base64 of the 64 bytes."""

    @field_validator("sig")
    @classmethod
    def _is_base64_of_a_signature(cls, value: str) -> str:
        if len(_exact_base64(value)) != 64:
            raise ValueError("an Ed25519 signature has 64 bytes")
        return value


class Envelope(Record):
    """A DSSE envelope with exactly one signature.

    More than one would leave bytes in the file that a reader with one trusted key can't check.
    """

    payload: str
    """Standard base64 of the in-toto Statement's canonical bytes."""
    payload_type: Literal["application/vnd.in-toto+json"]
    signatures: tuple[Signature, ...]

    @field_validator("signatures")
    @classmethod
    def _is_one(cls, value: tuple[Signature, ...]) -> tuple[Signature, ...]:
        if len(value) != 1:
            raise ValueError("exactly one signature is accepted")
        return value

    @field_validator("payload")
    @classmethod
    def _is_base64(cls, value: str) -> str:
        _exact_base64(value)
        return value

    @property
    def payload_bytes(self) -> bytes:
        """The statement's bytes."""
        return _exact_base64(self.payload)

    @property
    def signature(self) -> bytes:
        """The 64 bytes of the one signature."""
        return _exact_base64(self.signatures[0].sig)

    @property
    def key_id(self) -> str:
        """The key id that the signature claims."""
        return self.signatures[0].keyid

    @property
    def signed_bytes(self) -> bytes:
        """The pre-authentication encoding: what the signature is really over."""
        return pre_authentication_encoding(self.payload_type, self.payload_bytes)


def pre_authentication_encoding(payload_type: str, payload: bytes) -> bytes:
    """DSSE v1: `DSSEv1 <type length> <type> <payload length> <payload>`, lengths in bytes, in decimal."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def _exact_base64(text: str) -> bytes:
    """Decode standard base64 in its one spelling: padded, no white space, no stray bits in the last character."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise ValueError("not standard base64") from error
    if base64.b64encode(data).decode("ascii") != text:
        raise ValueError("not the one spelling of its base64")
    return data
