"""What a rule finds wrong with records."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule.

    Attributes:
        code: one of the stable codes.
        where: the record concerned, as a path into the evidence (`mutations[3].verdict`), or a registered name.
        message: what is wrong, in one sentence.
    """

    code: str
    where: str
    message: str
