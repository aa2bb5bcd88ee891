"""What `verify` found out."""

from __future__ import annotations

from dataclasses import dataclass

from firsthand.canonical import JSONValue
from firsthand.records import Evidence
from firsthand.rules import Problem


@dataclass(frozen=True, slots=True)
class Verification:
    """The answer about one sealed file.

    Attributes:
        valid: the file is whole, and everything in it follows from its records by the rules. Not whether it is fresh,
            and not who made it.
        stale: whether the files have changed since; None where no root was given, so that nobody looked.
        signed: whether a trusted key signed exactly these bytes. Never true when not valid.
        problems: everything found; empty exactly when valid and not stale.
        digest: digest of the stored bytes, computed; None when the file's shape is wrong.
        key_id: the key that signed when `signed`, else the key that the envelope claims; None without an envelope.
        evidence: the records that were verified, the same parse; None when not valid, so that nothing unverified is
            used by mistake.
    """

    valid: bool
    stale: bool | None
    signed: bool
    problems: tuple[Problem, ...]
    digest: str | None = None
    key_id: str | None = None
    evidence: Evidence | None = None

    @property
    def authenticity(self) -> str:
        """One sentence on what may be concluded about the origin."""
        if not self.valid:
            return "not valid"
        if self.signed:
            return f"authentic: signed by the trusted key {self.key_id}"
        if self.key_id is None:
            return "consistent, not authentic: unsigned, so anybody may have written it"
        return f"consistent, not authentic: signed by key {self.key_id}, which is not among the trusted keys"

    def as_json(self) -> dict[str, JSONValue]:
        """The answer as `firsthand verify --json` prints it."""
        return {
            "valid": self.valid,
            "stale": self.stale,
            "signed": self.signed,
            "authenticity": self.authenticity,
            "digest": self.digest,
            "keyId": self.key_id,
            "problems": [{"code": p.code, "where": p.where, "message": p.message} for p in self.problems],
        }
