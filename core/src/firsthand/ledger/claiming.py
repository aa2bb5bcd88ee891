"""What is refused at a claim, with what to do about it."""

from __future__ import annotations

from typing import Final

from firsthand.ledger.errors import ClaimRefusedError, PackageBindingError, RunBindingError
from firsthand.ledger.round import ClaimRequest
from firsthand.rules import Problem

_RECOVER: Final = "firsthand runs recover --stage {stage} --round N --as failed|abandoned --reason TEXT"
_NEXT: Final = {
    "round_taken": "wait for its end; `firsthand runs show` says which process holds it",
    "round_unknown": "see what is known with `firsthand runs show`, then close it: `" + _RECOVER + "`",
    "rounds_exhausted": "begin a new run with a new runId",
    "review_rejected": "change what was rejected; or say why the rejection does not count: `" + _RECOVER + "`",
}


def refuse_other_definition(bound: str, fingerprint: str, run_id: str) -> None:
    """Refuse a definition that the run was not begun with.

    Raises:
        RunBindingError: the fingerprints differ.
    """
    if bound != fingerprint:
        raise RunBindingError(
            f"the run {run_id!r} was begun with another definition (fingerprint {bound[:12]}…, now "
            f"{fingerprint[:12]}…)",
            where="runId",
            next_step="restore the definition that the run was begun with, or choose a new runId",
        )


def refuse_claim(number: int | Problem, request: ClaimRequest) -> int:
    """The number of the round, where one may be claimed.

    Raises:
        ClaimRefusedError: with the rule's reason.
    """
    if isinstance(number, Problem):
        raise ClaimRefusedError(
            number.message,
            where=f"{request.run_id}, {number.where}",
            next_step=_NEXT[number.code].format(stage=request.stage),
            code=number.code,
        )
    return number


def refuse_other_package(bound: str | None, request: ClaimRequest, *, first: bool) -> None:
    """Refuse a package that the run's first round did not bind.

    Args:
        bound: the package that is bound.
        request: the claim.
        first: whether this is the run's first round, which binds whatever package there is.

    Raises:
        PackageBindingError: the packages differ.
    """
    if not first and bound != request.package_digest:
        raise PackageBindingError(
            "the package's documents are not those of the run's first round",
            where=f"{request.run_id}: package",
            next_step="restore the documents, or begin a new run with a new runId",
        )
