"""What the review benchmark counts, and that it says so where it can't run. Its figures are not judged here."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.cases.review import CALLS, Spent, find_cli, review, scenario, share_rows, spent
from benchmarks.harness.bench import Bench
from benchmarks.harness.command import run_one
from benchmarks.harness.row import CannotRunError

from firsthand.records import ToolCall
from firsthand.records.mutation import Mutation
from firsthand.review.interface import Host
from firsthand_claude.program import bundled_program

DIGEST = "0" * 64
ONE = Spent(whole_s=11.0, cli_s=8.0, identity_s=1.0, calls_s=5.0, commands_s=4.5, runs=3)


def call(number: int, *, ok: bool = True) -> ToolCall:
    return ToolCall(
        call=number,
        tool="read_file",
        arguments_sha256=DIGEST,
        arguments="{}",
        result="ok" if ok else "error",
        code="" if ok else "usage",
        result_sha256=DIGEST,
        result_bytes=2,
        runs=(),
        mutation=None,
        duration_ms=50,
    )


def test_our_time_is_what_is_around_the_cli_and_what_it_waits_for_beyond_the_commands() -> None:
    assert ONE.around_s == pytest.approx(2.0)
    assert ONE.serving_s == pytest.approx(0.5)
    assert ONE.own_s == pytest.approx(2.5)
    assert ONE.share_percent == pytest.approx(25.0)
    assert ONE.share_with_identity_percent == pytest.approx(100 * 3.5 / 11)


def test_the_parts_add_up_to_the_whole() -> None:
    cli_alone_s = ONE.cli_s - ONE.calls_s
    assert ONE.own_s + ONE.identity_s + cli_alone_s + ONE.commands_s == pytest.approx(ONE.whole_s)


def test_only_the_share_has_a_limit() -> None:
    rows = list(share_rows([ONE]))
    assert [row.limit for row in rows] == [10.0, *[None] * (len(rows) - 1)]
    assert rows[0].verdict == "over"


def test_calls_are_added_up_in_seconds() -> None:
    found = spent(whole_s=3.0, cli_s=2.0, identity_s=0.5, calls=[call(n) for n in range(1, CALLS + 1)], runs=())
    assert found.calls_s == pytest.approx(0.6)
    assert found.commands_s == 0
    assert found.runs == 0


@pytest.mark.parametrize("count", [0, CALLS - 1, CALLS + 1])
def test_a_review_with_other_calls_is_not_counted(count: int) -> None:
    with pytest.raises(CannotRunError, match=f"{count} calls instead of {CALLS}"):
        spent(whole_s=1.0, cli_s=1.0, identity_s=0.0, calls=[call(n) for n in range(1, count + 1)], runs=())


def test_a_review_with_a_call_that_was_not_served_is_not_counted() -> None:
    calls = [call(n, ok=n != 3) for n in range(1, CALLS + 1)]
    with pytest.raises(CannotRunError, match="read_file: usage"):
        spent(whole_s=1.0, cli_s=1.0, identity_s=0.0, calls=calls, runs=())


def test_the_model_makes_its_calls_one_at_a_time() -> None:
    *turns, last = scenario().turns
    assert all(len(turn.calls) == 1 for turn in turns)
    assert Counter(turn.calls[0].tool for turn in turns) == {"read_file": 6, "run_check": 3, "mutate_check": 3}
    assert last.calls[0].tool == "StructuredOutput"
    mutations = [turn.calls[0].arguments for turn in turns if turn.calls[0].tool == "mutate_check"]
    assert len({each["old"] for each in mutations}) == 3
    for each in mutations:
        Mutation(check=each["checkId"], path=each["path"], old=each["old"], new=each["new"])


def test_without_the_cli_the_reason_is_given(tmp_path: Path) -> None:
    with pytest.raises(CannotRunError, match=r"no program that can be run; install firsthand-claude\[cli\]"):
        find_cli(Host(environment={}, home=None, program=tmp_path / "claude"))


@pytest.mark.slow
def test_it_measures_real_reviews(tmp_path: Path) -> None:
    if bundled_program() is None:
        pytest.skip("claude-agent-sdk, which bundles the CLI, is not installed: pip install firsthand-claude[cli]")
    if sys.platform != "linux":
        pytest.skip("drives the sandbox of Linux")
    from firsthand_bubblewrap.launcher import Unusable, find_launcher  # noqa: PLC0415 # Linux only

    launcher = find_launcher()
    if isinstance(launcher, Unusable):
        pytest.skip(launcher.reason)
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o700)
    bench = Bench(scratch=scratch, state=tmp_path / "state", cache=tmp_path / "cache", rounds=1)
    report = run_one("review", review, bench)
    assert report.reason == ""
    limits = {row.about: row.limit for row in report.rows if row.limit is not None}
    assert sorted(limits.values()) == [10.0, 200.0, 1000.0]
    assert all(len(row.own.values) == 1 and row.own.least > 0 for row in report.rows)
