"""Which rounds an operator may close."""

from __future__ import annotations

from typing import Final

from firsthand.ledger.errors import RecoveryError
from firsthand.ledger.round import Round
from firsthand.rules import GOING_ON

REASON_LIMIT: Final = 2000
"""Characters of an operator's reason."""


def refuse_recovery(found: Round | None, where: str, reason: str) -> Round:
    """The round, if it may be closed by hand: an unclear end or a rejection, not closed before, with a reason.

    Raises:
        RecoveryError: it may not.
    """
    if found is None:
        raise RecoveryError("there is no such round", where=where, next_step="see `firsthand runs list`")
    if not reason.strip() or len(reason) > REASON_LIMIT:
        raise RecoveryError(
            f"a reason is needed, of at most {REASON_LIMIT} characters", where="--reason", next_step="say why"
        )
    if found.facts.closed_as is not None:
        raise RecoveryError(
            f"this round was closed before: {found.facts.closed_as} ({found.facts.reason})",
            where=where,
            next_step="nothing needs to be done",
        )
    if found.facts.state in GOING_ON:
        raise RecoveryError(
            f"this round goes on in process {found.owner.identity.pid}",
            where=where,
            next_step="wait for it, or end that process first",
        )
    if found.facts.state not in {"unknown", "rejected"}:
        raise RecoveryError(
            f"this round ended clearly: {found.facts.state}",
            where=where,
            next_step="only an unclear end or a rejection is closed by hand",
        )
    return found
