"""How answers are reached from attempts: what the host saw first, the errno inside only then, silence never."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from firsthand.isolation.battery.probe import Attempt, Finding, Line
from firsthand.records import ProbeOutcome

if TYPE_CHECKING:
    from firsthand.isolation.battery.bench import Bench

_WORST_FIRST: tuple[ProbeOutcome, ...] = ("failed", "not-run", "no-control", "passed")


def stopped(bench: Bench, attempts: Sequence[Attempt]) -> Finding:
    """The answer of a negative probe: every attempt must work unconfined and be stopped inside.

    Of several attempts the worst decides, in the order failed, not-run, no-control, passed. Attempts that the machine
    refuses to everyone are named and left out, unless there is no other.
    """
    answers = [(attempt, _one(bench, attempt)) for attempt in attempts if bench.asked(attempt)]
    if not answers:
        return Finding("no-control", "nothing here to attempt", "this machine has nothing of the kind", offered=False)
    observed = "; ".join(f"{attempt.id}: {answer.observed}" for attempt, answer in answers)
    control = "; ".join(f"{attempt.id}: {answer.control}" for attempt, answer in answers)
    counted = [answer for _, answer in answers if answer.result != "no-control" or answer.offered]
    if not counted:
        return Finding("no-control", observed, control, offered=False)
    worst = min(counted, key=lambda answer: _WORST_FIRST.index(answer.result))
    return Finding(worst.result, observed, control)


def works(bench: Bench, attempts: Sequence[Attempt]) -> Finding:
    """The answer of a positive probe: every attempt must have its effect inside; no control is needed."""
    result: ProbeOutcome = "passed"
    said = []
    for attempt in attempts:
        line = bench.line("inside", attempt)
        if line is None:
            return Finding("not-run", f"{attempt.id}: {bench.why_silent('inside')}")
        if not attempt.reached(bench.stage, "inside", line):
            result = "failed"
        said.append(f"{attempt.id}: {_what(line)}")
    return Finding(result, "; ".join(said))


def _one(bench: Bench, attempt: Attempt) -> Finding:
    control, offered, worked = _control(bench, attempt)
    line = bench.line("inside", attempt)
    # 1. What the host saw of the attempt decides, whatever the inside says, and even if it says nothing.
    if attempt.reached(bench.stage, "inside", line or {}):
        return Finding("failed", f"reached ({_what(line or {})})", control)
    # 2. Without a report the attempt may never have been made.
    if line is None:
        return Finding("not-run", bench.why_silent("inside"), control)
    # 3. Neither may it with an error that no refusal gives.
    if not line.get("did") and line.get("errno") not in attempt.refused:
        return Finding("not-run", _what(line), control)
    # 4. A refusal proves something only if the same attempt works outside.
    if not worked:
        return Finding("no-control", _what(line), control, offered=offered)
    return Finding("passed", _what(line), control)


def _control(bench: Bench, attempt: Attempt) -> tuple[str, bool, bool]:
    """What the control did, whether the machine offers the attack, and whether it worked."""
    if not attempt.controlled:
        return "none by design: it would leave a lasting effect", False, False
    line = bench.line("control", attempt)
    if line is None:
        return bench.why_silent("control"), True, False
    if attempt.reached(bench.stage, "control", line):
        return "worked", True, True
    if line.get("errno") in attempt.unoffered:
        return f"not offered by this machine ({line['errno']})", False, False
    return f"did not work ({_what(line)})", True, False


def _what(line: Line) -> str:
    if "error" in line:
        return f"the probe broke: {line['error']}"
    if line.get("did"):
        return "done, without effect" if line.get("saw") == "" else f"done: {_short(str(line['saw']))}"
    return str(line.get("errno", "no report"))


def _short(text: str) -> str:
    """Keep a result short; what was read may be long."""
    return text if len(text) <= 200 else f"{text[:200]}…"
