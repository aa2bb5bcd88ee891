"""How long the program takes to say what it can do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness.bench import Bench
from benchmarks.harness.clock import in_turns, timed
from benchmarks.harness.row import CannotRunError, Row, Samples
from benchmarks.projects.bare import bare_program

from firsthand.cli.app import app

_LIMIT = 1.2


def start(bench: Bench) -> Iterator[Row]:
    """`firsthand --help` against a bare typer and rich program with the same commands and options."""
    environment = bench.environment()
    folder = bench.scratch / "bare"
    folder.mkdir()
    # A module behind a two-line script, as an installed program is, so that its bytecode is kept as well.
    (folder / "bare_app.py").write_text(bare_program(app), encoding="utf-8")
    script = folder / "bare"
    script.write_text(f"#!{sys.executable}\nimport sys\nfrom bare_app import app\nsys.exit(app())\n", encoding="utf-8")
    script.chmod(0o755)
    program = bench.program()

    def run(path: Path, *arguments: str) -> bytes:
        ended = subprocess.run(
            [path, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        if ended.returncode != 0:
            raise CannotRunError(f"{path.name} {' '.join(arguments)}: {ended.stderr.decode(errors='replace')[-300:]}")
        return ended.stdout

    shown = [run(path, "--help").decode().splitlines() for path in (program, script)]
    if len(shown[0]) != len(shown[1]):
        raise CannotRunError(f"the bare program's help has {len(shown[1])} lines instead of {len(shown[0])}")
    sides = (
        timed(lambda: run(program, "--help")),
        timed(lambda: run(script, "--help")),
        timed(lambda: run(program, "--version")),
        timed(lambda: run(Path(sys.executable), "-c", "import typer, rich")),
    )
    help_s, bare_s, version_s, import_s = in_turns(sides, bench.times(25), warm_up=2)
    yield Row(
        about="firsthand --help",
        own=Samples.of_seconds("firsthand", help_s),
        other=Samples.of_seconds("bare typer + rich", bare_s),
        figure="ratio",
        limit=_LIMIT,
        note="the same commands, options and help texts with empty bodies; bytecode kept for both",
    )
    yield Row(
        about="firsthand --version",
        own=Samples.of_seconds("firsthand", version_s),
        other=Samples.of_seconds("import typer, rich", import_s),
        figure="ratio",
    )
