"""The program's own peak memory while checks print and report without measure."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness.bench import Bench
from benchmarks.harness.row import CannotRunError, Row, Samples
from benchmarks.projects.flood import FLOODS, flood_project

_LIMIT_MB = 150.0
_PEAK = Path(__file__).parents[1] / "harness" / "peak.py"


def memory(bench: Bench) -> Iterator[Row]:
    """`firsthand check` as a process of its own, by the kernel's count of its largest resident size."""
    if sys.platform == "win32":
        raise CannotRunError("nothing is executed on Windows")
    program, environment = bench.program(), bench.environment()
    quiet = flood_project(bench.scratch / "quiet", "quiet")
    _peak(program, quiet, bench, environment)  # runs the battery, whose own memory is not asked for here
    for name, flood in FLOODS.items():
        config = quiet if name == "quiet" else flood_project(bench.scratch / name, name)
        peaks = [_peak(program, config, bench, environment) for _ in range(bench.times(2))]
        yield Row(
            about=f"a check that {flood.about}",
            own=Samples("peak", tuple(peak / 1e6 for peak in peaks)),
            other=None,
            figure="own",
            unit="MB",
            limit=_LIMIT_MB,
        )


def _peak(program: Path, config: Path, bench: Bench, environment: dict[str, str]) -> int:
    command: list[str | Path] = [sys.executable, "-I", "-S", _PEAK, program, "check"]
    command += ["--config", config, "--state", bench.state]
    answer = json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    if answer["exit"] not in (0, 1, 4):
        raise CannotRunError(f"firsthand check ended with {answer['exit']}: {answer['said'][-500:]}")
    return int(answer["peak_bytes"])
