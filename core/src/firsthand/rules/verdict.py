"""What one mutation shows, from the records of its runs alone.

Only `detected` is a catch. Every doubt ends in a verdict that is none. Source: the contract, Checks and mutations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from firsthand.records import CheckRun, Mode, MutationCause, TestCounts, TestNames, Verdict
from firsthand.rules.failure import ran_out, repeats_control
from firsthand.rules.runner import FIRST_SIGNAL_EXIT_CODE, is_ordinary_failure
from firsthand.rules.status import green_doubt, is_consistent

LIMIT_SIDE_BYTES: Final = 16 * 1024
"""Longest `old` and longest `new` of a mutation, in bytes of UTF-8."""

_GRACE_MS: Final = 5_000
_BASELINE_FACTOR: Final = 5

REFUSALS: Final[frozenset[MutationCause]] = frozenset(
    {
        "old-absent",
        "old-not-unique",
        "old-equals-new",
        "too-large",
        "not-utf-8",
        "path-not-registered",
        "path-missing",
        "check-not-registered",
    }
)
"""Causes of `not-applied`: nothing was written and nothing ran."""

INTERRUPTIONS: Final[frozenset[MutationCause]] = frozenset(
    {"cancelled", "copy-drift", "cleanup-unknown", "sandbox-failed", "not-restored"}
)
"""What the host itself saw go wrong around the runs. It always ends in `inconclusive`, so that taking one from a
record can only lower a verdict."""

_LOADER_STAND_IN: Final = "unittest.loader._FailedTest"
"""What unittest runs in place of a module that it could not import."""

_DOUBT_CAUSES: Final[dict[str, MutationCause]] = {
    "no-tests": "no-tests",
    "all-skipped": "no-tests",
    "ended-early": "ended-early",
    "report-contradicts-exit": "report-contradicts-exit",
    "report-unreadable": "report-unreadable",
}


@dataclass(frozen=True, slots=True)
class Restoration:
    """The bytes and mode before the mutation and after its end, as the host read them from the working copy."""

    original_sha256: str | None
    original_mode: Mode | None
    restored_sha256: str | None
    restored_mode: Mode | None

    @property
    def exact(self) -> bool:
        """Whether the same bytes and the same mode stand again; unknown is not exact."""
        return (
            self.original_sha256 is not None
            and self.original_mode is not None
            and self.restored_sha256 == self.original_sha256
            and self.restored_mode == self.original_mode
        )


def mutated_deadline_ms(timeout_ms: int, slowest_baseline_ms: int) -> int:
    """Deadline of a mutated run: the check's own limit, or 5 s + 5 x its slowest run on unmodified files."""
    return min(timeout_ms, _GRACE_MS + _BASELINE_FACTOR * slowest_baseline_ms)


def mutated_deadline_s(timeout_ms: int, slowest_baseline_ms: int) -> float:
    """The same in seconds."""
    return mutated_deadline_ms(timeout_ms, slowest_baseline_ms) / 1000


def control_shows(control: CheckRun | None) -> MutationCause | None:
    """Why a control run does not show that the file is what runs, or None when it shows it.

    A green control: the broken file was never loaded. A control that neither failed nor ended by itself (a timeout,
    a signal, a program that could not start) shows nothing either way.
    """
    if control is None or control.command.outcome.kind != "exited" or control.status == "unknown":
        return "no-control"
    return "control-stayed-green" if control.status == "passed" else None


def mutation_verdict(  # noqa: PLR0911 # one return a rule: it reads as the table that it is
    *,
    before: CheckRun | None,
    mutated: CheckRun | None,
    after: CheckRun | None,
    control: CheckRun | None,
    restoration: Restoration,
    names: Mapping[str, TestNames],
    interruption: MutationCause | None = None,
) -> tuple[Verdict, MutationCause]:
    """Judge one mutation that was applied or was about to be.

    Args:
        before: the check's last run on the unmodified files of the same lane.
        mutated: the run with the mutation in place; None when it never came to that.
        after: the run on the restored files.
        control: the run of the control mutation of the same file and check.
        restoration: bytes and mode before and after.
        names: every `TestNames` of the evidence, by digest.
        interruption: what the host saw go wrong beside the runs, one of `INTERRUPTIONS`.

    Raises:
        ValueError: `interruption` is not one of `INTERRUPTIONS`.
    """
    if interruption is not None:
        if interruption not in INTERRUPTIONS:
            raise ValueError(f"{interruption} is no interruption")
        return "inconclusive", interruption
    if before is None or before.status != "passed":
        return "inconclusive", "not-green-before"
    # The control comes before the mutated run's own end: on a file that never runs, no end means anything.
    unshown = control_shows(control)
    if unshown == "control-stayed-green":
        return "not-exercised", unshown
    if mutated is None:
        return "inconclusive", unshown or "cancelled"
    ended = _not_an_exit(mutated)
    if ended is not None:
        return ended
    if not restoration.exact:
        return "inconclusive", "not-restored"
    if after is None or after.status != "passed":
        return "inconclusive", "not-green-after"
    if control is None or unshown is not None:
        return "inconclusive", "no-control"
    return _from_exit(before, mutated, after, control, names)


def _not_an_exit(  # noqa: PLR0911 # the same
    mutated: CheckRun,
) -> tuple[Verdict, MutationCause] | None:
    """The verdict of a run that did not end by an ordinary exit; None for one that did."""
    outcome = mutated.command.outcome
    if outcome.cleanup == "unknown":
        return "inconclusive", "cleanup-unknown"
    match outcome.kind:
        case "sandbox-failed":
            return "inconclusive", "sandbox-failed"
        case "could-not-start":
            return "inconclusive", "could-not-start"
        case "timed-out":
            return "timeout", "deadline"
        case "signalled":
            return "crash", "signal"
        case "output-limit":
            return "crash", "output-limit"
        case "exited":
            if (outcome.exit_code or 0) >= FIRST_SIGNAL_EXIT_CODE:
                return "crash", "signal-exit-code"
            return None


def _from_exit(  # noqa: PLR0911 # the same
    before: CheckRun, mutated: CheckRun, after: CheckRun, control: CheckRun, names: Mapping[str, TestNames]
) -> tuple[Verdict, MutationCause]:
    exit_code = mutated.command.outcome.exit_code or 0
    if mutated.runner == "exit":
        if exit_code == 0:
            return "survived", "check-stayed-green"
        if not is_ordinary_failure("exit", exit_code):
            return "inconclusive", "unordinary-exit-code"
        return _unless_accident(mutated, control, "exit-code-only")
    if before.tests is None or after.tests is None or not _same_tests(before.tests, after.tests):
        return "inconclusive", "counts-drifted"
    if exit_code == 0:
        return _from_green(before.tests, mutated.tests)
    if not is_ordinary_failure(mutated.runner, exit_code):
        return "inconclusive", "unordinary-exit-code"
    doubt = _failure_doubt(before.tests, mutated, names)
    if doubt is not None:
        return "inconclusive", doubt
    return _unless_accident(mutated, control, "named-test-failed")


def _unless_accident(mutated: CheckRun, control: CheckRun, cause: MutationCause) -> tuple[Verdict, MutationCause]:
    """A catch, unless its failures say that limits were reached or that the file did not load."""
    if ran_out(mutated):
        return "crash", "resource-exhausted"
    if repeats_control(mutated, control):
        return "inconclusive", "same-failure-as-control"
    return "detected", cause


def _from_green(baseline: TestCounts, tests: TestCounts | None) -> tuple[Verdict, MutationCause]:
    doubt = green_doubt(tests)
    if doubt is not None:
        return "inconclusive", _DOUBT_CAUSES[doubt]
    # A green run of other tests than the baseline's says nothing of the tests that went missing.
    if tests is None or not _same_tests(baseline, tests):
        return "inconclusive", "counts-drifted"
    return "survived", "check-stayed-green"


def _failure_doubt(  # noqa: PLR0911 # the same
    baseline: TestCounts, mutated: CheckRun, names: Mapping[str, TestNames]
) -> MutationCause | None:
    """Why an ordinary failing exit is no catch, or None when a test of the baseline's set is named as failed."""
    tests = mutated.tests
    if tests is None or not is_consistent(tests):
        return "report-unreadable"
    built = mutated.runner in {"go-test", "cargo-test"}
    if built and not tests.executed:
        return "no-named-test"
    if not tests.complete:
        return "ended-early"
    if not tests.failed:
        return "report-contradicts-exit" if tests.executed else "no-named-test"
    if not tests.failures:
        return "no-named-test"
    if baseline.names is None:
        # A summary that names no passed test: the counts must agree, so that no stand-in for a broken module
        # (which the runners count as one test of its own) passes for a test of the baseline.
        if tests.executed != baseline.executed:
            return "counts-drifted"
        stand_ins = all(_LOADER_STAND_IN in failure.name for failure in tests.failures)
        return "failed-test-not-in-baseline" if stand_ins else None
    known = names.get(baseline.names)
    if known is None:
        return "no-named-test"
    baseline_names = frozenset(known.names)
    if not any(failure.name in baseline_names for failure in tests.failures):
        return "failed-test-not-in-baseline"
    return None


def _same_tests(one: TestCounts, other: TestCounts) -> bool:
    return (one.executed, one.names) == (other.executed, other.names)
