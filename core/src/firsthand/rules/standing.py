"""Which runs and catches still count: each check's latest unmodified run, and nothing from before a red one.

Source: the contract, Checks and mutations ("a later red baseline … voids earlier success of that check").
"""

from __future__ import annotations

from collections.abc import Iterable

from firsthand.records import CheckRun, Manifest, MutationRun


def is_unmodified(run: CheckRun) -> bool:
    """Whether the run saw the frozen bytes: a baseline, or a run after an exact restore."""
    return run.purpose in {"baseline", "restored"}


def latest_unmodified(runs: Iterable[CheckRun]) -> dict[str, CheckRun]:
    """Each check's unmodified run with the highest number: the only one that speaks for the check."""
    latest: dict[str, CheckRun] = {}
    for run in runs:
        if is_unmodified(run) and (run.check_id not in latest or run.run > latest[run.check_id].run):
            latest[run.check_id] = run
    return latest


def voids(run: CheckRun, catch: MutationRun) -> bool:
    """Whether this run takes back the success of an earlier mutation: same check, unmodified, later, not green."""
    return (
        is_unmodified(run)
        and run.status != "passed"
        and run.check_id == catch.mutation.check
        and catch.before is not None
        and run.run > catch.before
    )


def standing_catches(mutations: Iterable[MutationRun], runs: Iterable[CheckRun]) -> tuple[MutationRun, ...]:
    """The `detected` mutations that no later run has taken back, in their order."""
    latest_red: dict[str, CheckRun] = {}
    for run in runs:
        if is_unmodified(run) and run.status != "passed":
            latest = latest_red.setdefault(run.check_id, run)
            latest_red[run.check_id] = run if run.run > latest.run else latest
    # The latest red run of a check voids whatever an earlier one does.
    return tuple(
        mutation
        for mutation in mutations
        if mutation.verdict == "detected"
        and (mutation.mutation.check not in latest_red or not voids(latest_red[mutation.mutation.check], mutation))
    )


def unprobed_paths(
    mutation_paths: Iterable[str], manifest: Manifest, mutations: Iterable[MutationRun], runs: Iterable[CheckRun]
) -> tuple[str, ...]:
    """Mutation paths that are present and have no standing catch, in the definition's order."""
    caught = {catch.mutation.path for catch in standing_catches(mutations, runs)}
    present = {entry.path for entry in manifest.entries if entry.state == "present"}
    return tuple(path for path in mutation_paths if path in present and path not in caught)
