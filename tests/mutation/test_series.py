from __future__ import annotations

import hashlib
import os
import re
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from checks.wrapped import Wrapped, interrupt, lose_the_end
from checks.yard import Yard, real_backend
from firsthand.checks import run_check
from firsthand.isolation.interface import Backend
from firsthand.mutation import Controls, run_series
from firsthand.records import Mutation, MutationRun

Make = Callable[..., Yard]
SH = "/usr/bin/sh"
VALUE = "X=1\nY=2\nZ=3\nUNUSED=0\n"
CHECK = '. ./value.sh\ntest "$X$Y$Z" = 123\n'


def real() -> Backend:
    found = real_backend()
    if isinstance(found, str):
        pytest.skip(found)
    return found


def shell(make: Make, value: str | bytes = VALUE, script: str = CHECK, **fields: object) -> Yard:
    files = {"value.sh": value, "check.sh": script, "test.sh": "#\n"}
    return make(files, (SH, "check.sh"), mutation_paths=("value.sh",), runner="exit", **fields)


def verdicts(results: tuple[MutationRun, ...]) -> list[str]:
    return [result.verdict for result in results]


def test_n_mutations_cost_2n_and_1_runs_and_one_control(yard: Make) -> None:
    made = shell(yard)
    results = made.mutate(("X=1", "X=9"), ("UNUSED=0", "UNUSED=1"), ("Z=3", "Z=4"), path="value.sh")
    assert verdicts(results) == ["detected", "survived", "detected"]
    purposes = [run.purpose for run in made.kept.runs]
    assert purposes == ["baseline", "control", *["mutated", "restored"] * 3]
    # Each names the runs it rests on; the green after one is the green before the next.
    assert [(result.before, result.mutated, result.after) for result in results] == [(1, 3, 4), (4, 5, 6), (6, 7, 8)]
    assert len(made.kept.controls) == 1


def test_a_green_run_is_never_shared_across_series_but_a_control_is(yard: Make) -> None:
    made = shell(yard)
    made.mutate(("X=1", "X=9"), path="value.sh")
    with made.lane() as lane:
        for number in (1, 2):
            mutation = Mutation(check="c", path="value.sh", old="Y=2", new=f"Y={number}{number}")
            run_series([mutation], made.registered, [lane], controls=made.controls, recorder=made.recorder)
    purposes = [run.purpose for run in made.kept.runs]
    assert purposes == ["baseline", "control", "mutated", "restored", *["baseline", "mutated", "restored"] * 2]
    assert made.close("mutate").status == "passed"


REFUSED = [
    (("missing", "x"), "old-absent"),
    (("=", "x"), "old-not-unique"),
    (("X=1", "X=1"), "old-equals-new"),
    (("X=1", "x" * 17 * 1024), "too-large"),
]


def test_refused_ones_run_nothing_and_the_counts_add_up(yard: Make) -> None:
    made = shell(yard, value=VALUE + "AAA=1\n")
    asked = [Mutation(check="c", path="value.sh", old=old, new=new) for (old, new), _ in REFUSED]
    asked += [
        Mutation(check="c", path="value.sh", old="AA", new="B"),
        Mutation(check="c", path="test.sh", old="#", new="x"),
        Mutation(check="c", path="/etc/passwd", old="root", new="x"),
        Mutation(check="other", path="value.sh", old="X=1", new="x"),
        Mutation(check="c", path="value.sh", old="X=1", new="X=2"),
    ]
    results = made.mutate(*asked)
    assert [result.cause for result in results] == [
        *(cause for _, cause in REFUSED),
        "old-not-unique",
        "path-not-registered",
        "path-not-registered",
        "check-not-registered",
        "exit-code-only",
    ]
    counts = Counter(verdicts(results))
    assert counts == {"not-applied": 8, "detected": 1}
    assert counts.total() == len(asked)
    evidence = made.evidence("mutate")
    assert (evidence.status, evidence.code) == ("refused", "mutation_not_applied")


def test_a_plan_of_refused_ones_runs_nothing_and_is_no_pass(yard: Make) -> None:
    made = shell(yard)
    made.mutate(("missing", "x"), path="value.sh")
    assert made.kept.runs == []
    assert made.evidence("mutate").status == "refused"


def test_a_file_that_is_no_text_is_refused_and_still_copied_byte_for_byte(yard: Make) -> None:
    raw = b"X=1\n# \xff\xfe\x00\n"
    made = shell(yard, value=raw, script=f"test $(wc -c < value.sh) = {len(raw)}\n")
    (result,) = made.mutate(("X=1", "X=2"), path="value.sh")
    assert (result.verdict, result.cause) == ("not-applied", "not-utf-8")
    assert made.check().status == "passed"


def test_a_missing_path_is_refused(yard: Make) -> None:
    made = shell(yard, prepare=lambda project: (project / "value.sh").unlink())
    (result,) = made.mutate(("X=1", "X=2"), path="value.sh")
    assert result.cause == "path-missing"


@pytest.mark.parametrize(
    ("raw", "mode"),
    [
        (b"\xef\xbb\xbf#a\r\n#b\r#c\nX=1", 0o644),
        ("X=1\n# \u2028\u2029\u0085\n".encode(), 0o755),
        (b"X=1", 0o600),
        (b"X=1\r\n", 0o444),
    ],
    ids=["mixed", "separators", "no-final-newline", "crlf"],
)
def test_every_byte_and_the_mode_come_back(yard: Make, raw: bytes, mode: int) -> None:
    script = "sha256sum value.sh; stat -c %a value.sh; ! grep -q firsthand value.sh && grep -q 'X=1' value.sh\n"
    made = shell(yard, value=raw, script=script, modes={"value.sh": mode})
    (result,) = made.mutate(("X=1", "X=2"), path="value.sh")
    mutated = raw.replace(b"X=1", b"X=2")
    assert result.verdict == "detected"
    assert result.original_sha256 == result.restored_sha256 == hashlib.sha256(raw).hexdigest()
    assert result.mutated_sha256 == hashlib.sha256(mutated).hexdigest()
    assert result.restored_mode == mode
    # What the check itself saw, run by run: original, control, mutated, original.
    seen = [re.findall(r"[0-9a-f]{64}", run.command.stdout.head)[0] for run in made.kept.runs]
    assert seen == [result.original_sha256, made.kept.controls[0].mutated_sha256, result.mutated_sha256, seen[0]]
    assert {run.command.stdout.head.split()[-1] for run in made.kept.runs} == {f"{mode:o}"}
    assert made.kept.controls[0].restored_sha256 == result.original_sha256


def test_a_hard_link_outside_never_changes(yard: Make, tmp_path: Path) -> None:
    outside = tmp_path / "outside.sh"

    def link(project: Path) -> None:
        outside.write_text(VALUE)
        (project / "value.sh").unlink()
        os.link(outside, project / "value.sh")

    made = shell(yard, prepare=link)
    assert made.snapshot.manifest.entries[0].links == 2
    assert verdicts(made.mutate(("X=1", "X=9"), path="value.sh")) == ["detected"]
    assert outside.read_text() == VALUE


def test_lanes_share_the_work_and_results_keep_the_plans_order(yard: Make) -> None:
    lines = "".join(f"V{number}={number}\n" for number in range(12))
    script = '. ./value.sh\nsleep 0.05\ntest "$V0$V1$V2$V3$V4$V5" = 012345\n'
    made = shell(yard, value=lines, script=script)
    asked = [(f"V{number}={number}\n", f"V{number}=x\n") for number in range(12)]
    results = made.mutate(*asked, jobs=2, path="value.sh")
    assert verdicts(results) == ["detected"] * 6 + ["survived"] * 6
    assert [result.mutation.old for result in results] == [old for old, _ in asked]
    assert {result.lane for result in results} == {0, 1}
    purposes = Counter(run.purpose for run in made.kept.runs)
    assert purposes == {"baseline": 2, "control": 1, "mutated": 12, "restored": 12}


def test_more_lanes_than_work_stay_unused(yard: Make) -> None:
    made = shell(yard)
    made.mutate(("X=1", "X=9"), jobs=3, path="value.sh")
    assert {run.lane for run in made.kept.runs} == {0}


def test_a_file_that_never_runs_costs_no_mutated_run(yard: Make) -> None:
    made = shell(yard, script="exit 0\n")
    results = made.mutate(("X=1", "X=9"), ("Y=2", "Y=9"), path="value.sh")
    assert verdicts(results) == ["not-exercised", "not-exercised"]
    assert [run.purpose for run in made.kept.runs] == ["baseline", "control"]
    assert made.evidence("mutate").code == "mutation_survived"


def test_a_red_baseline_is_run_once_and_stops_its_check_only(yard: Make) -> None:
    checks = [
        {"id": "red", "command": [SH, "-c", "exit 1"], "runner": "exit"},
        {"id": "green", "command": [SH, "check.sh"], "runner": "exit"},
    ]
    made = yard({"value.sh": VALUE, "check.sh": CHECK}, checks=checks, mutation_paths=("value.sh",))
    asked = [
        Mutation(check=check, path="value.sh", old=old, new="Q=1")
        for check in ("red", "green")
        for old in ("X=1", "Y=2")
    ]
    assert [result.cause for result in made.mutate(*asked)] == ["not-green-before"] * 2 + ["exit-code-only"] * 2
    assert [run.check_id for run in made.kept.runs].count("red") == 1
    assert made.evidence("mutate").code == "review_verification_baseline_failed"


def test_alternating_checks_rest_on_their_own_greens(yard: Make) -> None:
    checks = [{"id": name, "command": [SH, "check.sh"], "runner": "exit"} for name in ("a", "b")]
    made = yard({"value.sh": VALUE, "check.sh": CHECK}, checks=checks, mutation_paths=("value.sh",))
    asked = [
        Mutation(check=check, path="value.sh", old=old, new="Q=1") for old in ("X=1", "Y=2") for check in ("a", "b")
    ]
    assert verdicts(made.mutate(*asked)) == ["detected"] * 4
    assert Counter(run.purpose for run in made.kept.runs) == {
        "baseline": 2,
        "control": 2,
        "mutated": 4,
        "restored": 4,
    }


def test_a_mutated_run_has_a_deadline_of_its_own(yard: Make) -> None:
    wrapped = Wrapped(real())
    made = shell(yard, backend=wrapped, timeout_ms=120_000)
    (result,) = made.mutate(("X=1", "X=9"), path="value.sh")
    slowest_ms = made.kept.runs[0].command.outcome.duration_ms
    assert result.deadline_ms == 5_000 + 5 * slowest_ms
    baseline, control, mutated, restored = (request.timeout_s for request in wrapped.requests)
    assert baseline == restored == 120
    assert control == mutated == result.deadline_ms / 1000


def test_a_backend_that_can_not_prove_ends_mutates_in_fresh_copies(yard: Make) -> None:
    wrapped = Wrapped(real())
    made = shell(yard, backend=wrapped, ends_all=False)
    results = made.mutate(("X=1", "X=9"), ("UNUSED=0", "UNUSED=1"), path="value.sh")
    assert verdicts(results) == ["detected", "survived"]
    copies = [workspace.copy for workspace in wrapped.workspaces]
    assert len(set(copies)) == len(made.kept.runs)
    # A fresh copy holds the frozen bytes by itself: only the control and the mutations are written.
    assert len(wrapped.rewrites) == 3


def test_a_cancelled_series_restores_and_records_every_mutation(yard: Make) -> None:
    wrapped = Wrapped(real())
    made = shell(yard, backend=wrapped)
    results = made.mutate(
        ("X=1", "X=9"), ("Y=2", "Y=9"), ("Z=3", "Z=9"), path="value.sh", cancelled=lambda: len(wrapped.requests) >= 5
    )
    assert [(result.verdict, result.cause) for result in results] == [
        ("detected", "exit-code-only"),
        ("inconclusive", "cancelled"),
        ("inconclusive", "cancelled"),
    ]
    # The second was in place: its bytes are back, its green run after was not asked for.
    assert results[1].restored_sha256 == results[1].original_sha256 != results[1].mutated_sha256
    assert (results[1].mutated, results[1].after) == (5, None)
    assert results[2].before is None
    assert made.evidence("mutate").code == "mutation_inconclusive"


def test_a_cancelled_series_ends_the_command_that_runs(yard: Make) -> None:
    script = '. ./value.sh\ntest "$X" = 1 || { touch begun; exec sleep 60; }\n'
    made = shell(yard, script=script)
    begun = time.monotonic()
    with made.lane() as lane:
        results = run_series(
            [Mutation(check="c", path="value.sh", old=old, new="X=9") for old in ("X=1", "Y=2")],
            made.registered,
            [lane],
            controls=made.controls,
            recorder=made.recorder,
            cancelled=(lane.copy_path / "begun").exists,
        )
        # The lane was put right: its next command finds the frozen bytes and nothing else.
        assert lane.spoiled is None
        assert run_check(lane, made.checks["c"], made.recorder).status == "passed"
    assert time.monotonic() - begun < 30
    assert [result.cause for result in results] == ["cancelled", "cancelled"]
    assert results[0].restored_sha256 == results[0].original_sha256
    assert [run.purpose for run in made.kept.runs] == ["baseline", "control", "baseline"]
    made.close("mutate")


def test_a_cancelled_control_is_tried_again(yard: Make) -> None:
    script = "grep -q firsthand value.sh && { touch begun; test -e /nowhere || sleep 3; }\n" + CHECK
    made = shell(yard, script=script)
    mutation = Mutation(check="c", path="value.sh", old="X=1", new="X=9")
    with made.lane() as lane:
        causes = [
            run_series(
                [mutation],
                made.registered,
                [lane],
                controls=made.controls,
                recorder=made.recorder,
                cancelled=lambda: first and (lane.copy_path / "begun").exists(),  # noqa: B023 - called in this round
            )[0].cause
            for first in (True, False)
        ]
    assert causes == ["cancelled", "exit-code-only"]
    assert len(made.kept.controls) == 1
    made.close("mutate")


def test_an_interrupt_between_replace_and_restore_discards_the_copy_and_says_so(yard: Make) -> None:
    wrapped = Wrapped(real(), interrupt(3))
    made = shell(yard, backend=wrapped)
    asked = [Mutation(check="c", path="value.sh", old=old, new="Q=1") for old in ("X=1", "Y=2")]
    with made.lane() as lane, pytest.raises(KeyboardInterrupt):
        run_series(asked, made.registered, [lane], controls=made.controls, recorder=made.recorder)
    assert [(each.cause, each.mutated, each.restored_sha256) for each in made.kept.mutations] == [
        ("cancelled", None, None),
        ("cancelled", None, None),
    ]
    assert made.kept.mutations[0].mutated_sha256 is not None, "the mutation stood in the copy"
    assert not lane.copy_path.exists()
    made.close("mutate")


def test_an_interrupt_in_one_of_two_lanes_stops_both(yard: Make) -> None:
    wrapped = Wrapped(real(), interrupt(6))
    made = shell(yard, backend=wrapped)
    asked = [Mutation(check="c", path="value.sh", old="X=1", new=f"X={number}9") for number in range(20)]
    with ExitStack() as stack:
        lanes = [stack.enter_context(made.lane(number)) for number in range(2)]
        with pytest.raises(KeyboardInterrupt):
            run_series(asked, made.registered, lanes, controls=made.controls, recorder=made.recorder)
    assert len(made.kept.mutations) == 20
    assert {each.cause for each in made.kept.mutations[10:]} == {"cancelled"}
    assert not any(lane.copy_path.exists() for lane in lanes)
    made.close("mutate")


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_a_lost_end_stops_the_series_and_nothing_counts(yard: Make, at: int) -> None:
    made = shell(yard, backend=Wrapped(real(), lose_the_end(at)))
    results = made.mutate(("X=1", "X=9"), ("Y=2", "Y=9"), path="value.sh")
    assert {result.cause for result in results} == {"cleanup-unknown"}
    assert len(made.kept.runs) == at
    assert made.kept.voids == ["review_verification_cleanup_unknown"]
    assert made.evidence("mutate").code == "review_verification_cleanup_unknown"


def test_drift_stops_the_series_and_voids_what_was_caught(yard: Make) -> None:
    # The second mutation makes the check change a registered file.
    script = '. ./value.sh\ntest "$Y" = 2 || echo x >> test.sh\ntest "$X$Y$Z" = 123\n'
    made = shell(yard, script=script)
    results = made.mutate(("X=1", "X=9"), ("Y=2", "Y=9"), ("Z=3", "Z=9"), path="value.sh")
    assert [(result.verdict, result.cause) for result in results] == [
        ("detected", "exit-code-only"),
        ("inconclusive", "copy-drift"),
        ("inconclusive", "copy-drift"),
    ]
    evidence = made.evidence("mutate")
    assert (evidence.status, evidence.code) == ("failed", "review_verification_copy_drift")


def test_a_check_that_undoes_the_mutation_is_drift(yard: Make) -> None:
    made = shell(yard, script="printf '" + VALUE.replace("\n", "\\n") + "' > value.sh; exit 1\n")
    with made.lane() as lane:
        results = run_series(
            [Mutation(check="c", path="value.sh", old="X=1", new="X=9")],
            made.registered,
            [lane],
            controls=Controls(),
            recorder=made.recorder,
        )
    assert verdicts(results) == ["inconclusive"]


def test_a_series_needs_lanes_with_numbers_of_their_own(yard: Make) -> None:
    made = shell(yard)
    for lanes in ([], [made.lane(1), made.lane(1)]):
        with pytest.raises(ValueError, match="lane"):
            run_series([], made.registered, lanes, controls=Controls(), recorder=made.recorder)
