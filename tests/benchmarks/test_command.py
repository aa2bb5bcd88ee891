"""The one command, as `make bench` starts it. What it measures is not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.cases import CASES
from benchmarks.harness.bench import Bench
from benchmarks.harness.command import run_one
from benchmarks.harness.row import CannotRunError, Row, Samples


def bench(folder: Path) -> Bench:
    return Bench(scratch=folder, state=folder / "state", cache=folder / "cache")


def started(root: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, root / "benchmarks" / "run.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")


def test_a_benchmark_runs_from_anywhere_and_writes_what_it_measured(root: Path, tmp_path: Path) -> None:
    ended = started(root, "--only", "freeze", "--only", "peers", "--rounds", "2", "--json", tmp_path / "answer.json")
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    assert "freeze and one working copy" in ended.stdout
    assert "peers: not run: no peer was named" in ended.stdout
    answer = json.loads((tmp_path / "answer.json").read_text())
    freeze, peers = answer["benchmarks"]
    assert peers["notRun"] is not None
    row = freeze["rows"][0]
    assert (len(row["own"]["values"]), len(row["other"]["values"]), row["limit"]) == (2, 2, 1.5)
    assert row["byMinimum"] == pytest.approx(row["own"]["minimum"] / row["other"]["minimum"], rel=1e-3)
    assert answer["machine"]["cores"] >= 1


def test_an_unknown_name_is_refused_with_the_known_ones(root: Path) -> None:
    ended = started(root, "--only", "nothing")
    assert ended.returncode == 2
    assert all(name in ended.stderr for name in CASES)


@pytest.mark.parametrize("rounds", ["0", "-1", "x"])
def test_no_rounds_are_refused(root: Path, rounds: str) -> None:
    assert started(root, "--rounds", rounds).returncode == 2


def test_what_is_missing_is_the_reason_and_no_row(tmp_path: Path) -> None:
    def case(_: Bench) -> tuple[Row, ...]:
        raise CannotRunError("there is no tool")

    report = run_one("x", case, bench(tmp_path))
    assert (report.rows, report.reason) == ((), "there is no tool")


def test_a_benchmark_that_measures_nothing_says_so(tmp_path: Path) -> None:
    assert run_one("x", lambda _: (), bench(tmp_path)).reason == "it measured nothing"


def test_a_fault_of_ours_is_not_hidden_as_a_reason(tmp_path: Path) -> None:
    def case(_: Bench) -> tuple[Row, ...]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_one("x", case, bench(tmp_path))


def test_rows_are_kept(tmp_path: Path) -> None:
    row = Row("x", Samples("own", (1.0,)), None, "own")
    assert run_one("x", lambda _: (row,), bench(tmp_path)).rows == (row,)
