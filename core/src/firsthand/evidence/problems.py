"""The two codes that verification speaks, as problems."""

from __future__ import annotations

from firsthand.rules import Problem


def invalid(where: str, message: str) -> Problem:
    """The evidence can't be believed."""
    return Problem(code="evidence_invalid", where=where, message=message)


def stale(where: str, message: str) -> Problem:
    """The files are no longer those that the evidence is about."""
    return Problem(code="evidence_stale", where=where, message=message)
