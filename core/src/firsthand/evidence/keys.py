"""Ed25519 keys: what signs, what verifies, and what a key is called.

`cryptography` is imported where it is used, never when this module is: most commands need no key.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from firsthand.canonical import sha256_hex
from firsthand.evidence.envelope import Envelope, Signature, pre_authentication_encoding
from firsthand.evidence.errors import KeyFileError
from firsthand.evidence.statement import PAYLOAD_TYPE

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PRIVATE_HEADER: Final = b"-----BEGIN PRIVATE KEY-----"
PRIVATE_MARK: Final = b"PRIVATE KEY-----"
"""Stands in every PEM form of a private key, also in those that are refused."""

PUBLIC_HEADER: Final = b"-----BEGIN PUBLIC KEY-----"

_FIELD_PRIME: Final = 2**255 - 19
_ORDER_EIGHT_Y: Final = int.from_bytes(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
)
_SMALL_ORDER_Y: Final = frozenset({0, 1, _FIELD_PRIME - 1, _ORDER_EIGHT_Y, _FIELD_PRIME - _ORDER_EIGHT_Y})


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key that verifies.

    Attributes:
        key_id: SHA-256 of the DER SubjectPublicKeyInfo, recomputed from the key itself.
        pem: the SubjectPublicKeyInfo as PEM text.
    """

    key_id: str
    pem: str
    _key: Ed25519PublicKey = field(repr=False, compare=False)

    def accepts(self, envelope: Envelope) -> bool:
        """Whether the envelope's signature over its type and payload is this key's. The claimed key id is ignored."""
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - see the module's text

        try:
            self._key.verify(envelope.signature, envelope.signed_bytes)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key that signs. Its secret part never shows in `repr`."""

    public: PublicKey
    _key: Ed25519PrivateKey = field(repr=False, compare=False)

    def envelope(self, payload: bytes) -> Envelope:
        """A DSSE envelope around the statement's bytes, signed by this key."""
        signature = self._key.sign(pre_authentication_encoding(PAYLOAD_TYPE, payload))
        return Envelope(
            payload=base64.b64encode(payload).decode("ascii"),
            payload_type=PAYLOAD_TYPE,
            signatures=(Signature(keyid=self.public.key_id, sig=base64.b64encode(signature).decode("ascii")),),
        )


def parse_public_key(pem: bytes, where: str) -> PublicKey:
    """Read one public key from the exact bytes of a PEM file.

    Args:
        pem: the file's content.
        where: the file's name, for the error.

    Raises:
        KeyFileError: not exactly one PEM SubjectPublicKeyInfo of an Ed25519 key, a private key, or a key of small
            order, under which anybody can make signatures.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 - see the module's text
    from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: PLC0415 - see the module's text

    if PRIVATE_MARK in pem:
        raise KeyFileError(
            "this is a private key; a public key is wanted here",
            where=where,
            next_step="give what `firsthand keys show` prints, and keep the private key where it is",
        )
    if not pem.startswith(PUBLIC_HEADER):
        raise _not_a_key("public", where)
    try:
        key = load_pem_public_key(pem)
    except Exception as error:  # a parser of foreign bytes: whatever it raises means the same here
        raise _not_a_key("public", where) from error
    if not isinstance(key, Ed25519PublicKey):
        raise _wrong_type(key, where)
    return _public(key, where, exact=pem)


def parse_signing_key(pem: bytes, where: str) -> SigningKey:
    """Read one private key from the exact bytes of a PEM file.

    Raises:
        KeyFileError: not exactly one unencrypted PKCS8 PEM of an Ed25519 key.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - see the module's text
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415 - see the module's text

    if not pem.startswith(PRIVATE_HEADER):
        raise _not_a_key("private", where)
    try:
        key = load_pem_private_key(pem, password=None)
    except Exception as error:  # a parser of foreign bytes: whatever it raises means the same here
        raise _not_a_key("private", where) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _wrong_type(key, where)
    if private_pem(key).strip() != pem.strip():
        raise _not_a_key("private", where)
    return SigningKey(public=_public(key.public_key(), where), _key=key)


def generate_pem() -> bytes:
    """A new private key as PKCS8 PEM, from the operating system's randomness."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - see the module's text

    return private_pem(Ed25519PrivateKey.generate())


def private_pem(key: Ed25519PrivateKey) -> bytes:
    """The one PKCS8 PEM spelling of a private key, unencrypted."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - see the module's text

    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _public(key: Ed25519PublicKey, where: str, *, exact: bytes | None = None) -> PublicKey:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - see the module's text

    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    pem = key.public_bytes(serialization.Encoding.PEM, spki)
    if exact is not None and exact.strip() != pem.strip():
        raise _not_a_key("public", where)
    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    y_coordinate = int.from_bytes(raw, "little") & (2**255 - 1)
    if y_coordinate % _FIELD_PRIME in _SMALL_ORDER_Y:
        raise KeyFileError(
            "this public key has small order: anybody can make signatures that it accepts",
            where=where,
            next_step="make a key with `firsthand keys new` and trust that one",
        )
    return PublicKey(
        key_id=sha256_hex(key.public_bytes(serialization.Encoding.DER, spki)), pem=pem.decode("ascii"), _key=key
    )


def _not_a_key(kind: str, where: str) -> KeyFileError:
    form = "PEM SubjectPublicKeyInfo" if kind == "public" else "unencrypted PKCS8 PEM"
    command = "show" if kind == "public" else "new"
    return KeyFileError(
        f"not exactly one Ed25519 {kind} key in {form} form, without anything before or after it",
        where=where,
        next_step=f"use what `firsthand keys {command}` makes",
    )


def _wrong_type(key: object, where: str) -> KeyFileError:
    name = type(key).__name__.removesuffix("PublicKey").removesuffix("PrivateKey")
    return KeyFileError(
        f"a key of type {name.strip('_')}; only Ed25519 is accepted",
        where=where,
        next_step="make a key with `firsthand keys new`",
    )
