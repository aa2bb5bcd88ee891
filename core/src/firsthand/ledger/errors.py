"""What the ledger refuses."""

from __future__ import annotations

from firsthand.errors import FirsthandError, StateError


class LedgerError(StateError):
    """The ledger can't be used: wrong place, owner, mode or kind, malformed, rolled back, or it can't be written."""


class RunBindingError(FirsthandError):
    """Another definition is already bound to this run's id."""

    default_code = "review_verification_definition_changed"


class PackageBindingError(FirsthandError):
    """The package differs from the one that the run's first round bound."""

    default_code = "review_verification_package_binding"


class ClaimRefusedError(FirsthandError):
    """No round may be claimed now; nothing was, and no round is used up.

    Codes: `round_taken`, `round_unknown`, `rounds_exhausted`, `review_rejected`.
    """

    default_code = "round_taken"


class FencedError(FirsthandError):
    """A late write: this round was taken from its holder, or ended, before. Nothing was written."""

    default_code = "round_unknown"


class RecoveryError(FirsthandError):
    """This round can't be closed by an operator; nothing was changed."""

    default_code = "usage"
