"""From the records of a session to a sealed file."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from firsthand import __version__
from firsthand.engine.preparation import Run
from firsthand.errors import UsageError
from firsthand.evidence.keyfiles import load_signing_key
from firsthand.evidence.keys import SigningKey
from firsthand.evidence.package import package_digest
from firsthand.evidence.sealing import digest_of, seal
from firsthand.evidence.storing import write_sealed
from firsthand.records import Dispatch, Evidence, Isolation, Platform
from firsthand.rules import definition_facts, evidence_status, exit_status, unprobed_paths


@dataclass(frozen=True, slots=True)
class Sealed:
    """Evidence and where it lies."""

    evidence: Evidence
    path: Path
    sha256: str

    @property
    def exit_status(self) -> int:
        """What the process ends with."""
        return exit_status(self.evidence.code)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where evidence will go, and the key that will sign it; found usable before anything runs.

    Attributes:
        out: None for the state directory.
        key: None for unsigned evidence.
    """

    out: Path | None
    key: SigningKey | None


@dataclass(frozen=True, slots=True)
class Review:
    """What the evidence of a review has beyond its runs.

    Attributes:
        nonce: of the claim; stands in the evidence in place of the run's.
    """

    stage: str
    round_number: int
    nonce: str
    isolation: Isolation
    dispatch: Dispatch


def foresee(run: Run, out: Path | None, key: Path | None) -> Destination:
    """Refuse what could not be sealed in the end, before time is spent on it.

    Args:
        run: what is worked on.
        out: where the evidence goes; None for the state directory.
        key: a private key file.

    Raises:
        UsageError: something is at `out`, or its folder can't be written.
        KeyFileError: the key can't be used.
    """
    signing_key = None if key is None else load_signing_key(key, source=run.definition.root)
    if out is not None:
        refuse_taken(out)
    return Destination(out, signing_key)


def refuse_taken(out: Path) -> None:
    """Find out that a new file can be made, before time is spent on what it will hold.

    Raises:
        UsageError: something is there, or its folder can't be written.
    """
    if os.path.lexists(out):
        raise UsageError(
            "something is there already; evidence is never written over",
            where=str(out),
            next_step="name another file with --out",
        )
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK | os.X_OK):
        raise UsageError(
            "its folder does not exist or can't be written",
            where=str(out),
            next_step="name a file in a folder of yours",
        )


def seal_run(run: Run, kind: Literal["check", "mutate"], destination: Destination) -> Sealed:
    """Conclude, seal, sign when a key is given, and store.

    Args:
        run: after its last command.
        kind: what the evidence is about.
        destination: from `foresee`.

    Raises:
        EvidenceError: it can't be stored, or something is there by now.
    """
    evidence, raw = seal_bytes(run, kind, destination.key, None)
    name = f"{evidence.run_id}-{kind}-{evidence.started_at.replace(':', '')}-{evidence.nonce[:8]}.json"
    path = destination.out if destination.out is not None else run.state.evidence / name
    write_sealed(path, raw)
    sealed = Sealed(evidence, path, digest_of(raw))
    run.observers.evidence_sealed(str(path), sealed.sha256)
    return sealed


def seal_bytes(
    run: Run, kind: Literal["check", "mutate", "review"], key: SigningKey | None, review: Review | None
) -> tuple[Evidence, bytes]:
    """Compare everything once more, conclude, seal and sign; stores nothing.

    Args:
        run: after its last command.
        kind: what the evidence is about.
        key: None for unsigned evidence.
        review: stands exactly with the kind `review`.
    """
    run.check_again()
    evidence = _evidence(run, kind, review)
    return evidence, seal(evidence, key)


def _evidence(run: Run, kind: Literal["check", "mutate", "review"], review: Review | None) -> Evidence:
    definition, recording, manifest = run.definition, run.recording, run.snapshot.manifest
    enclosing = run.enclosing()
    facts = definition_facts(definition.canonical.decode())
    draft = Evidence(
        schema_version=1,
        kind=kind,
        run_id=definition.document.run_id,
        stage=None if review is None else review.stage,
        round=None if review is None else review.round_number,
        nonce=run.nonce if review is None else review.nonce,
        runtime=definition.document.runtime,
        review_runtime=None if review is None else definition.document.review_runtime,
        definition=definition.canonical.decode(),
        definition_digest=definition.fingerprint,
        package_digest=package_digest(manifest, definition.document),
        manifest=manifest,
        manifest_digest=manifest.canonical_digest(),
        platform=this_platform(),
        execution="none" if enclosing is None else "sandboxed",
        enclosing=enclosing,
        isolation=None if review is None else review.isolation,
        runs=tuple(recording.runs),
        test_names=tuple(recording.names.values()),
        controls=tuple(recording.controls),
        mutations=tuple(recording.mutations),
        unprobed=unprobed_paths(facts.mutation_paths, manifest, recording.mutations, recording.runs),
        dispatch=None if review is None else review.dispatch,
        voided=tuple(recording.voids),
        status="unknown",
        code="check_inconclusive",
        started_at=run.started_at,
        host_version=__version__,
    )
    status, code = evidence_status(draft, facts)
    return draft.model_copy(update={"status": status, "code": code})


def this_platform() -> Platform:
    """The machine, as the evidence names it."""
    return Platform(
        system=platform.system(),
        release=platform.release(),
        machine=platform.machine(),
        python=platform.python_version(),
    )
