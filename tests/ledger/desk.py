"""Rounds of a scripted run, without definition, files or reviewer."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from firsthand.ledger import Claim, ClaimRequest, Ledger
from firsthand.rules import ReviewVerdict

FINGERPRINT, PACKAGE = "f" * 64, "p" * 64
MANIFEST, OTHER_MANIFEST = "a" * 64, "b" * 64


def asked(**changes: Any) -> ClaimRequest:
    fields: dict[str, Any] = {
        "run_id": "run-1",
        "fingerprint": FINGERPRINT,
        "stage": "final",
        "max_rounds": 5,
        "package_digest": PACKAGE,
        "manifest_digest": MANIFEST,
        "content_digest": MANIFEST,
        "tests": {"tests/test_value.py": "e" * 64},
        "lease_s": 600.0,
    }
    return ClaimRequest(**(fields | changes))


def judged(ledger: Ledger, claim: Claim, verdict: ReviewVerdict, code: str = "") -> None:
    """From a claim to its end."""
    ledger.dispatched(claim)
    ledger.head(claim, "call", "c" * 64)
    ledger.seal(claim, evidence_digest=claim.nonce, evidence_name=f"{claim.round}.json", verdict=verdict)
    ledger.end(claim, verdict, code)


def python(program: str, *arguments: str) -> subprocess.Popen[str]:
    """A process that runs a program of the test's; pipes for both directions."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
