from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from firsthand.isolation.battery.judge import stopped, works
from firsthand.isolation.battery.probe import Attempt, Finding, Weight, counts

SEEN: set[str] = {"by-the-host"}


@dataclass
class Bench:
    """Only what judges ask a bench for: lines of both sides, and what the host saw."""

    inside: dict[str, Any] = field(default_factory=dict)
    control: dict[str, Any] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    stage: Any = None

    def asked(self, attempt: Attempt) -> bool:
        return attempt.id not in self.absent

    def line(self, side: str, attempt: Attempt) -> Any:
        return (self.inside if side == "inside" else self.control).get(attempt.id)

    def why_silent(self, side: str) -> str:
        return f"nothing from {side}"


DID = {"did": True, "saw": "x"}
REFUSED = {"did": False, "errno": "EACCES"}
ODD = {"did": False, "errno": "EINTR"}
BROKEN = {"did": False, "error": "ValueError: x"}
UNOFFERED = {"did": False, "errno": "ENOSYS"}


def attempt(name: str = "a", **more: Any) -> Attempt:
    return Attempt(name, "module.function", unoffered=frozenset({"ENOSYS"}), **more)


def answer(inside: Any, control: Any, one: Attempt | None = None) -> Finding:
    one = one or attempt()
    bench: Any = Bench(
        {} if inside is None else {one.id: inside},
        {} if control is None else {one.id: control},
    )
    return stopped(bench, (one,))


@pytest.mark.parametrize(
    ("inside", "control", "result", "offered"),
    [
        (REFUSED, DID, "passed", True),
        (DID, DID, "failed", True),
        # Success inside counts even where the control could not show anything.
        (DID, REFUSED, "failed", True),
        (DID, UNOFFERED, "failed", True),
        (DID, None, "failed", True),
        # Silence, a broken probe and an error that no refusal gives are no proof of an attempt.
        (None, DID, "not-run", True),
        (BROKEN, DID, "not-run", True),
        (ODD, DID, "not-run", True),
        ({}, DID, "not-run", True),
        # A refusal proves nothing unless the same attempt works outside.
        (REFUSED, REFUSED, "no-control", True),
        (REFUSED, None, "no-control", True),
        (REFUSED, BROKEN, "no-control", True),
        (REFUSED, UNOFFERED, "no-control", False),
    ],
)
def test_one_attempt(inside: Any, control: Any, result: str, offered: bool) -> None:
    finding = answer(inside, control)
    assert (finding.result, finding.offered) == (result, offered)


def test_what_the_host_saw_outweighs_the_word_from_inside() -> None:
    seen = attempt(reached=lambda _stage, side, _line: side == "inside")
    for inside in (REFUSED, None, BROKEN):
        assert answer(inside, DID, seen).result == "failed"
    unseen = attempt(reached=lambda _stage, side, _line: side == "control")
    assert answer(DID, DID, unseen).result == "passed"


def test_an_attempt_without_control_by_design_never_passes() -> None:
    uncontrolled = attempt(controlled=False)
    assert answer(REFUSED, None, uncontrolled).result == "no-control"
    assert not answer(REFUSED, None, uncontrolled).offered
    assert answer(DID, None, uncontrolled).result == "failed"
    # Not even a line that calls itself a control changes that.
    assert answer(REFUSED, DID, uncontrolled).result == "no-control"


def test_of_several_attempts_the_worst_decides() -> None:
    attempts = tuple(map(attempt, "abc"))
    control = dict.fromkeys("abc", DID)
    cases = [
        ({"a": REFUSED, "b": REFUSED, "c": REFUSED}, "passed"),
        ({"a": REFUSED, "b": REFUSED}, "not-run"),
        ({"a": REFUSED, "b": DID}, "failed"),
        ({"a": DID, "b": ODD, "c": REFUSED}, "failed"),
    ]
    for inside, result in cases:
        bench: Any = Bench(inside, control)
        assert stopped(bench, attempts).result == result


def test_what_the_machine_refuses_to_everyone_is_left_out_while_there_is_another_attempt() -> None:
    attempts = (attempt("a"), attempt("b"))
    inside = {"a": REFUSED, "b": REFUSED}
    bench: Any = Bench(inside, {"a": UNOFFERED, "b": DID})
    finding = stopped(bench, attempts)
    assert (finding.result, finding.offered) == ("passed", True)
    assert "a: not offered by this machine (ENOSYS)" in finding.control
    bench = Bench(inside, {"a": UNOFFERED, "b": UNOFFERED})
    finding = stopped(bench, attempts)
    assert (finding.result, finding.offered) == ("no-control", False)
    bench = Bench(inside, {"a": UNOFFERED, "b": REFUSED})
    finding = stopped(bench, attempts)
    assert (finding.result, finding.offered) == ("no-control", True)


def test_nothing_to_attempt_is_no_pass() -> None:
    bench: Any = Bench(absent={"a"})
    for attempts in ((), (attempt(),)):
        finding = stopped(bench, attempts)
        assert (finding.result, finding.offered) == ("no-control", False)


def test_a_positive_probe_needs_every_attempt() -> None:
    attempts = (attempt("a"), attempt("b"))
    for inside, result in (
        ({"a": DID, "b": DID}, "passed"),
        ({"a": DID, "b": REFUSED}, "failed"),
        ({"a": DID}, "not-run"),
    ):
        bench: Any = Bench(inside)
        assert works(bench, attempts).result == result


@pytest.mark.parametrize(
    ("weight", "result", "offered", "required"),
    [
        ("must", "passed", True, True),
        ("must", "no-control", False, True),
        ("where-offered", "passed", True, True),
        ("where-offered", "failed", False, True),
        ("where-offered", "not-run", True, True),
        ("where-offered", "no-control", True, True),
        ("where-offered", "no-control", False, False),
        ("shown", "failed", True, False),
    ],
)
def test_what_counts(weight: Weight, result: Any, offered: bool, required: bool) -> None:
    assert counts(weight, Finding(result, "", offered=offered)) is required
