"""`firsthand verify`."""

from __future__ import annotations

from pathlib import Path

from firsthand.cli.output import answers, end, lines, print_json, table
from firsthand.cli.trust import keys_at_hand
from firsthand.errors import EXIT_GOOD, EXIT_NEGATIVE
from firsthand.evidence.storing import read_sealed
from firsthand.evidence.verification import Verification
from firsthand.evidence.verifying import verify


def run(evidence: Path, root: Path | None, keys: list[Path], state: Path | None, *, as_json: bool) -> None:
    """Verify, show, end with 0 only for evidence that is valid and, with a root, fresh."""
    found = verify(
        read_sealed(evidence), trusted_keys=keys_at_hand(keys, state), root=root, require_signature=bool(keys)
    )
    if as_json:
        print_json(found.as_json())
    else:
        show(found)
    end(EXIT_GOOD if found.valid and not found.stale else EXIT_NEGATIVE)


def show(found: Verification) -> None:
    """The answer for people."""
    console = answers()
    if found.problems:
        rows = [(problem.code, problem.where, problem.message) for problem in found.problems]
        console.print(table(("CODE", "WHERE", "PROBLEM"), rows))
        console.print()
    evidence = found.evidence
    if evidence is not None:
        console.print(lines(f"{evidence.kind} of run {evidence.run_id}: {evidence.status} {evidence.code}".rstrip()))
    console.print(lines("valid: every digest and rule holds" if found.valid else "invalid"))
    if found.stale is not None:
        console.print(lines("stale: the files have changed since" if found.stale else "fresh: the files are the same"))
    if found.valid:
        console.print(lines(found.authenticity))
