"""Running `firsthand mutate` as a process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from benchmarks.harness.bench import Bench
from benchmarks.harness.row import CannotRunError


def mutate(
    bench: Bench, config: Path, plan: Path, *, jobs: int = 1, variables: Mapping[str, str] | None = None
) -> dict[str, int]:
    """Run a plan to its end and count the verdicts.

    Raises:
        CannotRunError: it was refused, or a mutation came to no verdict about the tests.
    """
    command: list[str | Path] = [bench.program(), "mutate", "--config", config, "--state", bench.state, "--plan", plan]
    ended = subprocess.run(
        [*command, "--jobs", str(jobs), "--json"],
        env=bench.environment() | dict(variables or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    answer = json.loads(ended.stdout or b"{}")
    if "counts" not in answer:
        raise CannotRunError(f"firsthand mutate: {answer.get('message') or ended.stderr.decode()[-300:]}")
    if ended.stderr:
        raise CannotRunError(f"firsthand mutate said: {ended.stderr.decode()[-300:]}")
    counts: dict[str, int] = answer["counts"]
    return counts
