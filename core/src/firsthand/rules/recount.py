"""Recompute what evidence claims of its runs and mutations, from the records alone.

Nothing here trusts a stored status or verdict: each is computed again by the functions that made it, and the order of
runs is checked, so that a dropped, reordered, borrowed or widened record shows. Source: the contract, Evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from firsthand.canonical import canonical_digest
from firsthand.records import CheckRun, ControlRun, Evidence, MutationRun, TestNames
from firsthand.rules.facts import DefinitionFacts
from firsthand.rules.failure import LIMIT_FAILURES
from firsthand.rules.problem import Problem
from firsthand.rules.standing import is_unmodified, unprobed_paths
from firsthand.rules.status import check_status
from firsthand.rules.verdict import (
    INTERRUPTIONS,
    LIMIT_SIDE_BYTES,
    REFUSALS,
    Restoration,
    mutated_deadline_ms,
    mutation_verdict,
)

_CODE: Final = "evidence_invalid"


@dataclass(frozen=True, slots=True)
class Place:
    """Where one run stands among those of its lane.

    Attributes:
        latest_unmodified: number of the latest unmodified run of the same check before it; None when there is none.
        slowest_ms: longest of these unmodified runs; 0 when there is none.
        following: number of the next run in the lane, of whatever check; None when there is none.
    """

    latest_unmodified: int | None
    slowest_ms: int
    following: int | None


@dataclass(frozen=True, slots=True)
class RunIndex:
    """The runs of one evidence by number, their places, and its tables of test names by digest.

    Made in one pass: evidence may hold thousands of runs, and a search for each of them would take minutes.
    """

    runs: Mapping[int, CheckRun]
    places: Mapping[int, Place]
    names: Mapping[str, TestNames]

    @classmethod
    def of(cls, evidence: Evidence) -> RunIndex:
        """Index an evidence; of runs with the same number the first counts."""
        runs: dict[int, CheckRun] = {}
        for run in evidence.runs:
            runs.setdefault(run.run, run)
        return cls(runs=runs, places=_places(runs), names={table.digest: table for table in evidence.test_names})

    def get(self, number: int | None) -> CheckRun | None:
        """The run of that number, or None."""
        return None if number is None else self.runs.get(number)


def _places(runs: Mapping[int, CheckRun]) -> dict[int, Place]:
    latest: dict[tuple[int, str], int] = {}
    slowest_ms: dict[tuple[int, str], int] = {}
    following: dict[int, int] = {}
    before_in_lane: dict[int, int] = {}
    found: dict[int, Place] = {}
    for number in sorted(runs):
        run = runs[number]
        key = (run.lane, run.check_id)
        if run.lane in before_in_lane:
            following[before_in_lane[run.lane]] = number
        before_in_lane[run.lane] = number
        found[number] = Place(latest.get(key), slowest_ms.get(key, 0), None)
        if is_unmodified(run):
            latest[key] = number
            slowest_ms[key] = max(slowest_ms.get(key, 0), run.command.outcome.duration_ms)
    return {number: replace(place, following=following.get(number)) for number, place in found.items()}


def record_problems(evidence: Evidence, facts: DefinitionFacts) -> tuple[Problem, ...]:
    """Everything in the runs, controls and mutations of an evidence that its own records do not bear out."""
    index = RunIndex.of(evidence)
    return (
        *_run_problems(evidence, facts, index),
        *_name_problems(evidence),
        *_control_problems(evidence, index),
        *_mutation_problems(evidence, facts, index),
        *_unprobed_problems(evidence, facts),
    )


def _run_problems(evidence: Evidence, facts: DefinitionFacts, index: RunIndex) -> Iterator[Problem]:
    for position, run in enumerate(evidence.runs):
        where = f"runs[{position}]"
        if run.run != position + 1:
            yield Problem(
                _CODE, f"{where}.run", f"run {run.run} stands at place {position + 1}: one is missing or moved"
            )
        check = facts.check(run.check_id)
        if check is None:
            yield Problem(_CODE, f"{where}.checkId", f"check {run.check_id} is not in the definition")
            continue
        if run.command.argv != check.command:
            yield Problem(_CODE, f"{where}.command.argv", "not the argv that is registered for this check")
        if run.runner != check.runner:
            yield Problem(_CODE, f"{where}.runner", f"the definition makes this check's runner {check.runner}")
        if (run.status, run.cause) != check_status(run.runner, run.command.outcome, run.tests):
            yield Problem(_CODE, f"{where}.status", "status and cause do not follow from the outcome and the tests")
        yield from _test_count_problems(run, where, index)


def _test_count_problems(run: CheckRun, where: str, index: RunIndex) -> Iterator[Problem]:
    if run.tests is None:
        return
    if run.runner == "exit":
        yield Problem(_CODE, f"{where}.tests", "runner exit counts no tests")
    if len(run.tests.failures) > LIMIT_FAILURES:
        yield Problem(_CODE, f"{where}.tests.failures", f"more than {LIMIT_FAILURES} failures")
    if run.tests.names is not None and run.tests.names not in index.names:
        yield Problem(_CODE, f"{where}.tests.names", "no table of test names has this digest")


def _name_problems(evidence: Evidence) -> Iterator[Problem]:
    used = {run.tests.names for run in evidence.runs if run.tests is not None}
    seen: set[str] = set()
    for position, table in enumerate(evidence.test_names):
        where = f"testNames[{position}]"
        if canonical_digest(list(table.names)) != table.digest:
            yield Problem(_CODE, f"{where}.digest", "not the digest of these names")
        if list(table.names) != sorted(set(table.names)):
            yield Problem(_CODE, f"{where}.names", "not sorted and distinct")
        if table.digest in seen or table.digest not in used:
            yield Problem(_CODE, where, "no run refers to this table, or it stands twice")
        seen.add(table.digest)


def _control_problems(evidence: Evidence, index: RunIndex) -> Iterator[Problem]:
    seen: set[tuple[str, str]] = set()
    numbers: set[int] = set()
    for position, control in enumerate(evidence.controls):
        where = f"controls[{position}]"
        key = (control.check_id, control.path)
        if key in seen:
            yield Problem(_CODE, where, "a control is tried once per file and check")
        seen.add(key)
        if control.run is None:
            continue
        run = index.get(control.run)
        if run is None or run.purpose != "control" or run.check_id != control.check_id or control.run in numbers:
            yield Problem(_CODE, f"{where}.run", "not a control run of this check, or used twice")
        numbers.add(control.run)
        entry = evidence.manifest.entry(control.path)
        if entry is None or control.mutated_sha256 in {None, entry.sha256}:
            yield Problem(_CODE, f"{where}.mutatedSha256", "the control did not change a registered file")
        if entry is not None and control.restored_sha256 not in {None, entry.sha256}:
            yield Problem(_CODE, f"{where}.restoredSha256", "not the frozen bytes")
    for position, run in enumerate(evidence.runs):
        if run.purpose == "control" and run.run not in numbers:
            yield Problem(_CODE, f"runs[{position}]", "a control run that no control refers to")


def _mutation_problems(evidence: Evidence, facts: DefinitionFacts, index: RunIndex) -> Iterator[Problem]:
    controls = {(control.check_id, control.path): control for control in evidence.controls}
    mutated_numbers: set[int] = set()
    for position, mutation in enumerate(evidence.mutations):
        where = f"mutations[{position}]"
        if mutation.mutated is not None:
            if mutation.mutated in mutated_numbers:
                yield Problem(_CODE, f"{where}.mutated", "the run of another mutation")
            mutated_numbers.add(mutation.mutated)
        if mutation.verdict == "not-applied":
            yield from _refusal_problems(mutation, where, evidence, facts)
            continue
        control = controls.get((mutation.mutation.check, mutation.mutation.path))
        yield from _verdict_problems(mutation, where, evidence, index, control)
        yield from _application_problems(mutation, where, evidence, facts)
        yield from _sequence_problems(mutation, where, facts, index)
    for position, run in enumerate(evidence.runs):
        if run.purpose == "mutated" and run.run not in mutated_numbers:
            yield Problem(_CODE, f"runs[{position}]", "a mutated run that no mutation refers to")


def _refusal_problems(
    mutation: MutationRun, where: str, evidence: Evidence, facts: DefinitionFacts
) -> Iterator[Problem]:
    if mutation.cause not in REFUSALS:
        yield Problem(_CODE, f"{where}.cause", f"{mutation.cause} is no reason for not-applied")
    if any(number is not None for number in (mutation.before, mutation.mutated, mutation.after)):
        yield Problem(_CODE, where, "a mutation that was not applied rests on no run")
    request = mutation.mutation
    entry = evidence.manifest.entry(request.path)
    claims = {
        "old-equals-new": request.old == request.new,
        "too-large": max(_size(request.old), _size(request.new)) > LIMIT_SIDE_BYTES,
        "path-not-registered": request.path not in facts.mutation_paths,
        "path-missing": entry is not None and entry.state == "missing",
        "check-not-registered": facts.check(request.check) is None,
    }
    if not claims.get(mutation.cause, True):
        yield Problem(_CODE, f"{where}.cause", f"{mutation.cause} does not hold")


def _verdict_problems(
    mutation: MutationRun, where: str, evidence: Evidence, index: RunIndex, control: ControlRun | None
) -> Iterator[Problem]:
    entry = evidence.manifest.entry(mutation.mutation.path)
    expected = mutation_verdict(
        before=index.get(mutation.before),
        mutated=index.get(mutation.mutated),
        after=index.get(mutation.after),
        control=index.get(control.run) if control is not None else None,
        restoration=Restoration(
            original_sha256=entry.sha256 if entry is not None else None,
            original_mode=entry.mode if entry is not None else None,
            restored_sha256=mutation.restored_sha256,
            restored_mode=mutation.restored_mode,
        ),
        names=index.names,
        interruption=mutation.cause if mutation.cause in INTERRUPTIONS else None,
    )
    if (mutation.verdict, mutation.cause) != expected:
        message = f"{mutation.verdict} ({mutation.cause}); the runs make it {expected[0]} ({expected[1]})"
        yield Problem(_CODE, f"{where}.verdict", message)


def _application_problems(
    mutation: MutationRun, where: str, evidence: Evidence, facts: DefinitionFacts
) -> Iterator[Problem]:
    request = mutation.mutation
    if request.path not in facts.mutation_paths or facts.check(request.check) is None:
        yield Problem(_CODE, f"{where}.mutation", "a path or check that the definition does not open to mutations")
    if request.old == request.new or not request.old or max(_size(request.old), _size(request.new)) > LIMIT_SIDE_BYTES:
        yield Problem(_CODE, f"{where}.mutation", "old and new must differ, old must not be empty, each at most 16 KiB")
    if mutation.mutated is None:
        return
    entry = evidence.manifest.entry(request.path)
    if entry is None or mutation.original_sha256 != entry.sha256 or entry.sha256 is None or entry.size is None:
        yield Problem(_CODE, f"{where}.originalSha256", "not the digest of the frozen file")
        return
    if mutation.mutated_sha256 in {None, mutation.original_sha256}:
        yield Problem(_CODE, f"{where}.mutatedSha256", "the file did not change")
    if mutation.offset_bytes is None or mutation.offset_bytes + _size(request.old) > entry.size:
        yield Problem(_CODE, f"{where}.offsetBytes", "old does not fit into the file at this place")


def _sequence_problems(mutation: MutationRun, where: str, facts: DefinitionFacts, index: RunIndex) -> Iterator[Problem]:
    mutated = index.get(mutation.mutated)
    if mutation.mutated is None or mutated is None:
        if mutation.mutated is not None:
            yield Problem(_CODE, f"{where}.mutated", "no such run")
        return
    place = index.places[mutated.run]
    if (mutated.lane, mutated.check_id, mutated.purpose) != (mutation.lane, mutation.mutation.check, "mutated"):
        yield Problem(_CODE, f"{where}.mutated", "not a mutated run of this check in this lane")
    if mutation.before != place.latest_unmodified:
        yield Problem(_CODE, f"{where}.before", "not the latest unmodified run of this check in this lane")
    if mutation.after is not None:
        after = index.get(mutation.after)
        fits = after is not None and (after.purpose, after.check_id) == ("restored", mutation.mutation.check)
        if not fits or mutation.after != place.following:
            yield Problem(_CODE, f"{where}.after", "not the run on the restored files that follows in this lane")
    if mutation.deadline_ms != mutated_deadline_ms(facts.timeout_ms, place.slowest_ms):
        yield Problem(_CODE, f"{where}.deadlineMs", "not the deadline that the earlier runs make")


def _unprobed_problems(evidence: Evidence, facts: DefinitionFacts) -> Iterator[Problem]:
    expected = unprobed_paths(facts.mutation_paths, evidence.manifest, evidence.mutations, evidence.runs)
    if evidence.unprobed != expected:
        yield Problem(_CODE, "unprobed", "not the mutation paths that are present and without a catch")


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
