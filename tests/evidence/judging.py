"""What tests of the verification say: a change in the plain JSON, and the place where it must be found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firsthand.evidence import Verification, verify

Change = Callable[[Any], None]


def found(raw: bytes, where: str, message: str = "", **arguments: Any) -> Verification:
    """Verify, and require that a problem at this place is found and nothing is believed."""
    answer = verify(raw, **arguments)
    assert not answer.valid
    assert not answer.signed
    assert answer.evidence is None
    assert {problem.code for problem in answer.problems} == {"evidence_invalid"}
    places = [(problem.where, problem.message) for problem in answer.problems]
    assert any(place == where and message in text for place, text in places), places
    return answer


def put(*path: str | int, to: Any) -> Change:
    """A change that sets one field."""

    def change(body: Any) -> None:
        for step in path[:-1]:
            body = body[step]
        assert body[path[-1]] != to
        body[path[-1]] = to

    return change
