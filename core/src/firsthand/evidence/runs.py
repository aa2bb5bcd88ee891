"""What the record of a run must show beside its verdict: an excerpt that is one, and a place in its lane."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from firsthand.canonical import sha256_hex
from firsthand.evidence.problems import invalid
from firsthand.records import CheckRun, Evidence, Excerpt
from firsthand.rules import Problem

LIMIT_EXCERPT_BYTES: Final = 8192
"""Most that head and tail of one excerpt take together, as UTF-8."""


def run_problems(evidence: Evidence) -> Iterator[Problem]:
    """What is wrong with runs that the rules on verdicts do not look at."""
    afters = {mutation.after for mutation in evidence.mutations}
    before_in_lane: dict[int, CheckRun] = {}
    for index, run in enumerate(evidence.runs):
        where = f"runs[{index}]"
        yield from _excerpt(f"{where}.command.stdout", run.command.stdout)
        yield from _excerpt(f"{where}.command.stderr", run.command.stderr)
        if run.command.cwd != ".":
            yield invalid(f"{where}.command.cwd", "checks run in the root of the working copy")
        previous = before_in_lane.get(run.lane)
        before_in_lane[run.lane] = run
        # A baseline needs no owner, and that mutated and control runs have one is for the rules.
        if run.purpose == "restored" and run.run not in afters and (previous is None or previous.purpose != "control"):
            yield invalid(where, "a run on restored files after nothing that was restored")
    yield from _order_in_lane(evidence)


def _order_in_lane(evidence: Evidence) -> Iterator[Problem]:
    """Records of one lane stand in the order of their runs, so that one that was moved shows."""
    controls = [(f"controls[{index}]", control.run) for index, control in enumerate(evidence.controls)]
    mutations = [(f"mutations[{index}]", mutation.mutated) for index, mutation in enumerate(evidence.mutations)]
    for records in (controls, mutations):
        latest: dict[int, int] = {}
        for where, number in records:
            if number is None or not 1 <= number <= len(evidence.runs):
                continue
            lane = evidence.runs[number - 1].lane
            if number < latest.get(lane, 0):
                yield invalid(where, "it stands after one that ran later in its lane")
            latest[lane] = number


def _excerpt(where: str, excerpt: Excerpt) -> Iterator[Problem]:
    head, tail = excerpt.head.encode(), excerpt.tail.encode()
    shown_bytes = len(head) + len(tail)
    if shown_bytes > LIMIT_EXCERPT_BYTES:
        yield invalid(where, f"more than {LIMIT_EXCERPT_BYTES} bytes are shown")
    if excerpt.tail and not excerpt.truncated:
        yield invalid(f"{where}.tail", "stands only where something between head and tail is not shown")
    # Escapes stand for bytes that are no UTF-8; then what was read can't be rebuilt from the text.
    if "\\x" in excerpt.head or "\\x" in excerpt.tail:
        return
    if excerpt.truncated and excerpt.total_bytes <= shown_bytes:
        yield invalid(f"{where}.truncated", "all that was read is shown")
    if not excerpt.truncated and (len(head), sha256_hex(head)) != (excerpt.total_bytes, excerpt.sha256):
        yield invalid(f"{where}.head", "not the bytes that size and digest say were read")
