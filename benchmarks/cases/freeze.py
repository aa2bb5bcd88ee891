"""Freezing the most files of the most bytes that a definition may register."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from benchmarks.harness.bench import Bench, needs
from benchmarks.harness.clock import in_turns
from benchmarks.harness.row import CannotRunError, Row, Samples
from benchmarks.projects.plain import plain_project

from firsthand.definition import load_definition
from firsthand.files import remove_path
from firsthand.snapshot import freeze

_FILES = 256
_BYTES = 16 * 1024 * 1024
_LIMIT = 1.5


def freeze_files(bench: Bench) -> Iterator[Row]:
    """`freeze` and one working copy against `cp -a` of the same folder and `sha256sum` of the same files."""
    cp, sha256sum = needs("cp"), needs("sha256sum")
    root = bench.scratch / "project"
    config = plain_project(root, files=_FILES, total_bytes=_BYTES)
    definition = load_definition(config, state_dir=bench.state)
    names = [each.path for each in definition.registered]
    if len(names) != _FILES:
        raise CannotRunError(f"{len(names)} files are registered instead of {_FILES}")
    numbers = count()
    first: list[float] = []
    copied: list[float] = []

    def own() -> float:
        folder = bench.scratch / f"own-{next(numbers)}"
        start = time.perf_counter()
        snapshot = freeze(definition, folder)
        frozen = time.perf_counter()
        snapshot.working_copy(folder / "copy")
        end = time.perf_counter()
        remove_path(folder)
        first.append(frozen - start)
        return end - start

    def other() -> float:
        folder = bench.scratch / f"other-{next(numbers)}"
        start = time.perf_counter()
        _run([cp, "-a", str(root / "src"), str(folder)], root)
        end_of_copy = time.perf_counter()
        _run([sha256sum, *names], root)
        end = time.perf_counter()
        remove_path(folder)
        copied.append(end_of_copy - start)
        return end - start

    rounds = bench.times(20)
    own_s, other_s = in_turns((own, other), rounds, warm_up=2)
    baseline = Samples.of_seconds("cp -a, sha256sum", other_s)
    yield Row(
        about="freeze and one working copy, 256 files, 16 MiB",
        own=Samples.of_seconds("freeze, copy", own_s),
        other=baseline,
        figure="ratio",
        limit=_LIMIT,
        note="own side: read once for digest and pristine copy, then read, compared and written again as the working "
        "copy; other side: one copy, one digest",
    )
    yield Row(
        about="freeze alone, the same files",
        own=Samples.of_seconds("freeze", first[-rounds:]),
        other=baseline,
        figure="ratio",
        note="one read, one digest, one copy on both sides",
    )
    twice = [2 * copy + (whole - copy) for copy, whole in zip(copied[-rounds:], other_s, strict=True)]
    yield Row(
        about="freeze and one working copy, beside two copies",
        own=Samples.of_seconds("freeze, copy", own_s),
        other=Samples.of_seconds("twice cp -a, sha256sum", twice),
        figure="ratio",
        note="the other side's second copy is reckoned, not run",
    )


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
