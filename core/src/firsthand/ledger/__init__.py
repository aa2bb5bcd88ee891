"""The ledger: runs, rounds, claims and heads, in a private SQLite file that survives crashes and power cuts."""

from firsthand.ledger.chain import Head
from firsthand.ledger.errors import (
    ClaimRefusedError,
    FencedError,
    LedgerError,
    PackageBindingError,
    RecoveryError,
    RunBindingError,
)
from firsthand.ledger.ledger import Entry, Ledger
from firsthand.ledger.owner import Owner
from firsthand.ledger.round import Claim, ClaimRequest, Round
from firsthand.ledger.rows import Run

__all__ = [
    "Claim",
    "ClaimRefusedError",
    "ClaimRequest",
    "Entry",
    "FencedError",
    "Head",
    "Ledger",
    "LedgerError",
    "Owner",
    "PackageBindingError",
    "RecoveryError",
    "Round",
    "Run",
    "RunBindingError",
]
