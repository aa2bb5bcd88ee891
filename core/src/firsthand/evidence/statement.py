"""The in-toto Statement that a signature covers.

It is derived from the evidence, every byte of it: whoever verifies derives it again and accepts no other. Its subjects
are the frozen files, and its predicate names the digest of the exact stored bytes, which binds the signature to them.
"""

from __future__ import annotations

from typing import Final

from firsthand.canonical import JSONValue, canonical_bytes
from firsthand.records import Evidence

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"

EVIDENCE_TYPE: Final = "https://firsthand.dev/evidence/v1"
"""Predicate type of the statement and schema name of the sealed file. A stable name; nothing is fetched from it."""

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"

NO_FILES_SUBJECT: Final = "firsthand:manifest"
"""Stands for the manifest where no registered file is present: a statement must have a subject."""


def statement_bytes(evidence: Evidence, digest: str) -> bytes:
    """The canonical bytes of the statement about this evidence.

    Args:
        evidence: the records.
        digest: SHA-256 over their exact stored bytes.
    """
    subjects: list[JSONValue] = [
        {"name": entry.path, "digest": {"sha256": entry.sha256}}
        for entry in evidence.manifest.entries
        if entry.sha256 is not None
    ]
    if not subjects:
        subjects = [{"name": NO_FILES_SUBJECT, "digest": {"sha256": evidence.manifest_digest}}]
    return canonical_bytes(
        {
            "_type": STATEMENT_TYPE,
            "subject": subjects,
            "predicateType": EVIDENCE_TYPE,
            "predicate": {
                "evidence": {"sha256": digest},
                "kind": evidence.kind,
                "runId": evidence.run_id,
                "stage": evidence.stage,
                "round": evidence.round,
                "nonce": evidence.nonce,
                "status": evidence.status,
                "code": evidence.code,
                "definitionDigest": evidence.definition_digest,
                "manifestDigest": evidence.manifest_digest,
                "hostVersion": evidence.host_version,
            },
        }
    )
