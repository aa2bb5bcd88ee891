"""The command line: which benchmarks run, how often, and where the answer goes."""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import platformdirs
from benchmarks.cases import CASES
from benchmarks.harness.answer import show, write_json
from benchmarks.harness.bench import Bench
from benchmarks.harness.machine import machine, told
from benchmarks.harness.row import CannotRunError, Report, Row

from firsthand.errors import FirsthandError


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for and show each table as soon as it is there; 0 unless the arguments are wrong."""
    asked = _parser().parse_args(arguments)
    found = machine()
    print(told(found))
    print("FIGURE is made of medians. Both sides of a row were measured in turns in this run.\n", flush=True)
    reports = []
    with tempfile.TemporaryDirectory(prefix="firsthand-bench-", dir=asked.tmp) as folder:
        root = Path(folder).resolve()
        bench = Bench(
            scratch=root,
            state=root / "state",
            cache=Path(platformdirs.user_cache_dir("firsthand-bench")),
            rounds=asked.rounds,
            schema=asked.schema,
            srt=asked.srt,
            mutmut=asked.mutmut,
            cosmic_ray=asked.cosmic_ray,
        )
        for name in asked.only or CASES:
            scratch = root / name
            scratch.mkdir(mode=0o700)
            report = run_one(name, CASES[name], replace(bench, scratch=scratch))
            reports.append(report)
            show(report)
    if asked.json is not None:
        write_json(asked.json, found, reports)
    return 0


def run_one(name: str, case: Callable[[Bench], Iterable[Row]], bench: Bench) -> Report:
    """One benchmark's report; what it lacks here is the reason in it."""
    begun = time.perf_counter()
    try:
        rows, reason = tuple(case(bench)), ""
        if not rows:
            reason = "it measured nothing"
    except (CannotRunError, FirsthandError, OSError, subprocess.SubprocessError) as error:
        rows, reason = (), str(error)
    return Report(name=name, rows=rows, reason=reason, seconds=time.perf_counter() - begun)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description="Measure Firsthand side by side.")
    parser.add_argument("--only", action="append", choices=tuple(CASES), metavar="NAME", help=", ".join(CASES))
    parser.add_argument("--rounds", type=_positive, metavar="N", help="measure each side N times")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every value here")
    parser.add_argument("--tmp", type=Path, metavar="DIR", help="work below this folder, on the file system to measure")
    parser.add_argument("--schema", type=Path, metavar="DIR", help="unpacked sdist of schema 0.7.8 (default: fetched)")
    parser.add_argument("--srt", type=Path, metavar="FILE", help="the srt program of @anthropic-ai/sandbox-runtime")
    parser.add_argument("--mutmut", type=Path, metavar="FILE", help="the mutmut 3 program, pytest beside it")
    parser.add_argument("--cosmic-ray", type=Path, metavar="FILE", help="the cosmic-ray program, pytest beside it")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number
