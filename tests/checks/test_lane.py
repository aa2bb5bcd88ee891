from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checks.wrapped import Wrapped, interrupt, lose_the_end
from checks.yard import PYTEST, UNITTEST, Yard, real_backend
from firsthand.checks import CleanupUnknownError, LaneInterruptedError, run_check
from firsthand.isolation.interface import Backend
from firsthand.records import CheckRun
from firsthand.snapshot import CopyDriftError

Make = Callable[..., Yard]
SH = "/usr/bin/sh"


def real() -> Backend:
    found = real_backend()
    if isinstance(found, str):
        pytest.skip(found)
    return found


def shell(make: Make, script: str, **fields: Any) -> Yard:
    files = {"check.sh": script, "value.sh": "X=1\n", **fields.pop("files", {})}
    return make(files, (SH, "check.sh"), mutation_paths=("value.sh",), runner="exit", **fields)


def test_nothing_is_carried_from_one_command_to_the_next(yard: Make) -> None:
    script = (
        "test -z \"$(ls -A | grep -v -e '^check.sh$' -e '^value.sh$')\" || exit 1\n"
        'test ! -e "$HOME/x" || exit 2\ntest ! -e "$TMPDIR/x" || exit 3\n'
        "mkdir -p a/b && touch a/b/c .hidden && chmod 0500 a/b && chmod 0 a\n"
        'touch "$HOME/x" "$TMPDIR/x"; ln -s /etc/passwd link; mkfifo pipe\n'
    )
    assert shell(yard, script).check(times=3).status == "passed"


def test_a_changed_file_spoils_the_lane_and_voids_once(yard: Make) -> None:
    made = shell(yard, "echo >> value.sh\n")
    with made.lane() as lane:
        run = run_check(lane, made.checks["c"], made.recorder)
        assert run.status == "passed"
        assert isinstance(lane.spoiled, CopyDriftError)
        for _ in range(2):
            with pytest.raises(CopyDriftError, match=r"value\.sh"):
                run_check(lane, made.checks["c"], made.recorder)
    assert made.kept.voids == ["review_verification_copy_drift"]
    evidence = made.close("check")
    assert (evidence.status, evidence.code) == ("failed", "review_verification_copy_drift")


@pytest.mark.parametrize("change", ["rm value.sh", "chmod 755 value.sh", "mv value.sh x; ln -s x value.sh"])
def test_every_kind_of_change_is_drift(yard: Make, change: str) -> None:
    made = shell(yard, f"{change}\n")
    with made.lane() as lane:
        run_check(lane, made.checks["c"], made.recorder)
        assert made.kept.voids == ["review_verification_copy_drift"]
        assert lane.spoiled is not None


def test_a_registered_missing_file_that_a_command_makes_is_drift(yard: Make, tmp_path: Path) -> None:
    made = yard(
        {"check.sh": "echo > later.txt\n", "later.txt": ""},
        (SH, "check.sh"),
        runner="exit",
        prepare=lambda project: (project / "later.txt").unlink(),
    )
    with made.lane() as lane:
        run_check(lane, made.checks["c"], made.recorder)
        assert isinstance(lane.spoiled, CopyDriftError)


def test_a_lane_leaves_nothing_behind(yard: Make) -> None:
    made = shell(yard, "mkdir d; touch d/x; chmod 0 d\n")
    before = set(made.ground.folder.iterdir())
    made.check()
    assert set(made.ground.folder.iterdir()) == before


def test_a_lost_end_ends_the_session_and_keeps_the_copy(yard: Make) -> None:
    made = shell(yard, "exit 0\n", backend=Wrapped(real(), lose_the_end(2)))
    with made.lane() as lane:
        run_check(lane, made.checks["c"], made.recorder)
        run = run_check(lane, made.checks["c"], made.recorder)
        assert (run.status, run.cause) == ("unknown", "cleanup-unknown")
        assert isinstance(lane.spoiled, CleanupUnknownError)
        assert lane.spoiled.copy == lane.copy_path
        with pytest.raises(CleanupUnknownError, match="residues --clean"):
            run_check(lane, made.checks["c"], made.recorder)
    assert made.kept.voids == ["review_verification_cleanup_unknown"]
    assert (lane.copy_path / "value.sh").read_text() == "X=1\n"
    evidence = made.close("check")
    assert (evidence.status, evidence.code) == ("unknown", "review_verification_cleanup_unknown")


def test_an_interrupt_spoils_the_lane_and_its_copy_goes(yard: Make) -> None:
    made = shell(yard, "exit 0\n", backend=Wrapped(real(), interrupt(1)))
    with contextlib.suppress(KeyboardInterrupt), made.lane() as lane:
        try:
            run_check(lane, made.checks["c"], made.recorder)
        finally:
            assert isinstance(lane.spoiled, LaneInterruptedError)
            with pytest.raises(LaneInterruptedError):
                run_check(lane, made.checks["c"], made.recorder)
    assert not lane.copy_path.exists()
    assert made.kept.runs == []
    assert made.kept.voids == []


def test_a_backend_that_can_not_prove_ends_gets_a_new_place_for_every_command(yard: Make) -> None:
    wrapped = Wrapped(real())
    made = shell(yard, "test ! -e trace || exit 1; touch trace\n", backend=wrapped, ends_all=False)
    assert made.check(times=3).status == "passed"
    copies = [workspace.copy for workspace in wrapped.workspaces]
    assert len(set(copies)) == 3
    assert not any(copy.exists() for copy in copies)


def test_a_program_that_was_not_placed_never_starts(yard: Make) -> None:
    made = yard({"value.py": ""}, ("/no/such/program",), runner="exit")
    run = made.check()
    assert (run.status, run.cause) == ("failed", "could-not-start")
    assert run.command.executable is None
    assert "/no/such/program" in run.command.outcome.detail


def test_a_program_that_vanished_never_starts(yard: Make, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/usr/bin/sh\n")
    program.chmod(0o755)
    made = yard({"value.py": ""}, (str(program),), runner="exit")
    run = made.check()
    assert (run.status, run.cause) == ("failed", "could-not-start")
    assert run.command.executable is not None


def test_argv_stays_as_registered_and_the_report_is_asked_for_by_the_environment(yard: Make) -> None:
    wrapped = Wrapped(real())
    made = yard({"test_value.py": "def test_a(): pass\n"}, PYTEST, backend=wrapped)
    run = made.check(times=2)
    assert run.command.argv == PYTEST
    assert {request.argv for request in wrapped.requests} == {PYTEST}
    asked = [request.environment["PYTEST_ADDOPTS"] for request in wrapped.requests]
    assert len(set(asked)) == 2, "each run has a report of its own name"
    assert run.tests is not None
    assert (run.tests.source, run.tests.executed) == ("report", 1)


def test_a_runner_without_a_report_is_asked_for_none(yard: Make) -> None:
    wrapped = Wrapped(real())
    files = {"test_value.py": "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"}
    run = yard(files, UNITTEST, backend=wrapped).check()
    assert wrapped.requests[0].environment == {}
    assert run.tests is not None
    assert (run.tests.source, run.tests.executed) == ("summary", 1)


def test_excerpts_are_cut_and_digests_are_not(yard: Make) -> None:
    run: CheckRun = shell(yard, "yes 0123456789 | head -c 100000; printf '\\377' >&2\n").check()
    assert run.command.stdout.truncated
    assert run.command.stdout.total_bytes == 100_000
    assert len((run.command.stdout.head + run.command.stdout.tail).encode()) <= 8192
    assert run.command.stderr.head == "\\xff"
