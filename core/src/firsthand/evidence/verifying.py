"""Verification of a sealed file, in numbered steps, offline and without a sandbox.

Source: the contract, Evidence. Each step trusts only what the steps before it have shown, and a step that finds
something ends the verification: what comes later would speak of records that are not what they seem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from firsthand.canonical import sha256_hex
from firsthand.evidence.bindings import binding_problems
from firsthand.evidence.dispatch import dispatch_problems
from firsthand.evidence.envelope import Envelope
from firsthand.evidence.errors import EvidenceError
from firsthand.evidence.form import form_problems
from firsthand.evidence.keys import PublicKey
from firsthand.evidence.problems import invalid
from firsthand.evidence.runs import run_problems
from firsthand.evidence.sealing import Opened, open_sealed
from firsthand.evidence.staleness import replay_problems, staleness_problems
from firsthand.evidence.statement import statement_bytes
from firsthand.evidence.verification import Verification
from firsthand.records import Evidence
from firsthand.rules import FactsError, Problem, definition_facts, evidence_status, record_problems


def verify(
    raw: bytes,
    *,
    trusted_keys: Sequence[PublicKey] = (),
    root: Path | None = None,
    require_signature: bool = False,
) -> Verification:
    """Verify the bytes of a sealed file. Reads files only below `root`; writes, runs and prints nothing.

    Args:
        raw: the exact bytes as they were read.
        trusted_keys: keys that were obtained elsewhere. A key that came with the evidence must not be among them.
        root: where the registered files lie now, to see whether the evidence is stale.
        require_signature: whether evidence that no trusted key signed is a problem.

    Returns:
        The answer. Bad evidence is an answer and raises nothing.
    """
    # 1. Shape: strict, canonical, schema version 1, nothing missing and nothing more.
    try:
        opened = open_sealed(raw)
    except EvidenceError as error:
        return Verification(valid=False, stale=None, signed=False, problems=(invalid(error.where, error.message),))
    evidence = opened.evidence
    digest = sha256_hex(opened.stored)
    claimed_key = None if opened.envelope is None else opened.envelope.key_id
    steps: tuple[Callable[[], Iterable[Problem]], ...] = (
        # 2. Digests: the stored bytes, the definition, the manifest.
        lambda: _digests(opened, digest),
        # 3. Bindings: the parts belong together, and to the definition that the evidence carries.
        lambda: form_problems(evidence),
        lambda: binding_problems(evidence),
        lambda: () if evidence.dispatch is None else dispatch_problems(evidence, evidence.dispatch),
        # 4. Rules: every status and verdict once more from the records, by the functions that made them.
        lambda: _rules(evidence),
        # 5. Signature: the statement that these bytes make, and nothing else, signed by a key trusted beforehand.
        lambda: _statement(opened, digest),
        lambda: _signature(opened.envelope, trusted_keys, required=require_signature),
    )
    for step in steps:
        problems = tuple(step())
        if problems:
            return Verification(
                valid=False, stale=None, signed=False, problems=problems, digest=digest, key_id=claimed_key
            )
    # 6. Staleness: the files as they are now, and each mutation applied to them once more.
    changed: list[Problem] = []
    if root is not None:
        changed, contents = staleness_problems(evidence, root)
        replayed = tuple(replay_problems(evidence, contents))
        if replayed:
            return Verification(
                valid=False, stale=bool(changed), signed=False, problems=replayed, digest=digest, key_id=claimed_key
            )
    return Verification(
        valid=True,
        stale=None if root is None else bool(changed),
        signed=any(key.key_id == claimed_key for key in trusted_keys),
        problems=tuple(changed),
        digest=digest,
        key_id=claimed_key,
        evidence=evidence,
    )


def _digests(opened: Opened, digest: str) -> Iterable[Problem]:
    evidence = opened.evidence
    if digest != opened.digest:
        yield invalid("digest", f"the stored bytes have the digest {digest}: they changed after sealing")
        return
    if sha256_hex(evidence.definition.encode()) != evidence.definition_digest:
        yield invalid("definitionDigest", "not the digest of the definition")
    if evidence.manifest.canonical_digest() != evidence.manifest_digest:
        yield invalid("manifestDigest", "not the digest of the manifest")


def _rules(evidence: Evidence) -> Iterable[Problem]:
    try:
        facts = definition_facts(evidence.definition)
    except FactsError as error:
        yield invalid("definition", str(error))
        return
    problems = (*record_problems(evidence, facts), *run_problems(evidence))
    yield from problems
    if not problems:
        expected = evidence_status(evidence, facts)
        if (evidence.status, evidence.code) != expected:
            shown = " ".join(part for part in (evidence.status, evidence.code) if part)
            rightly = " ".join(part for part in expected if part)
            yield invalid("status", f"{shown}; the records make it {rightly}")


def _statement(opened: Opened, digest: str) -> Iterable[Problem]:
    if opened.envelope is not None and opened.envelope.payload_bytes != statement_bytes(opened.evidence, digest):
        yield invalid("envelope.payload", "not the statement that this evidence makes: it was signed for another")


def _signature(envelope: Envelope | None, trusted_keys: Sequence[PublicKey], *, required: bool) -> Iterable[Problem]:
    if envelope is None:
        if required:
            yield invalid("envelope", "unsigned, and a signature is required")
        return
    # The claimed id only picks the key; the ids of trusted keys were computed from the keys themselves.
    key = next((key for key in trusted_keys if key.key_id == envelope.key_id), None)
    if key is None:
        if required:
            yield invalid("envelope.signatures[0]", f"signed by key {envelope.key_id}, which is not trusted")
    elif not key.accepts(envelope):
        yield invalid("envelope.signatures[0].sig", f"not a signature of key {key.key_id} over these bytes")
