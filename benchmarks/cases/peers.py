"""Other people's tools beside this one, where the command line says where they are.

They do other work for their time: each row's note says which. Nothing here is a claim, only a place to stand.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

from benchmarks.harness.bench import Bench
from benchmarks.harness.clock import Measured, in_turns, timed
from benchmarks.harness.row import CannotRunError, Row, Samples
from benchmarks.projects.mutating import mutate
from benchmarks.projects.plain import plain_project
from benchmarks.projects.schema import MODULE, Schema, schema_project

from firsthand.checks import Lane
from firsthand.engine.preparation import prepare
from firsthand.isolation.interface import Request
from firsthand.plugins import Observers

_MUTANTS = 20


def peers(bench: Bench) -> Iterator[Row]:
    """Rows for each peer that was named; a mutation tool's figure is seconds for one mutant, all its work included."""
    if bench.srt is None and bench.mutmut is None and bench.cosmic_ray is None:
        raise CannotRunError("no peer was named (--srt, --mutmut, --cosmic-ray)")
    if bench.srt is not None:
        yield _sandbox_runtime(bench, bench.srt)
    if bench.mutmut is not None or bench.cosmic_ray is not None:
        yield from _mutation_tools(bench)


def _sandbox_runtime(bench: Bench, srt: Path) -> Row:
    config = plain_project(bench.scratch / "project", files=20, total_bytes=1024 * 1024)
    with prepare(config, bench.state, Observers()) as prepared, Lane(prepared.ground, 0) as lane:
        request = Request(argv=("true",), executable="/usr/bin/true", timeout_s=60.0)
        sides = (
            timed(lambda: lane.execute(request)),
            timed(lambda: _run([srt, "true"], bench.scratch)),
        )
        own_s, other_s = in_turns(sides, bench.times(20), warm_up=2)
    return Row(
        about="one `true` in a sandbox",
        own=Samples.of_seconds("lane", own_s),
        other=Samples.of_seconds("srt true", other_s),
        figure="ratio",
        note="srt starts Node and its proxies for each command; a lane is opened once and settles its copy twice",
    )


def _mutation_tools(bench: Bench) -> Iterator[Row]:
    project = schema_project(bench)
    plan = project.write_plan(bench.scratch / "plan.json", project.plan(_MUTANTS))
    mutate(bench, project.config, project.write_plan(bench.scratch / "one.json", project.plan(1)))
    numbers = count()

    def own() -> float:
        start = time.perf_counter()
        mutate(bench, project.config, plan)
        return (time.perf_counter() - start) / _MUTANTS

    sides: list[tuple[str, str, Measured]] = []
    if bench.mutmut is not None:
        mutmut = bench.mutmut
        sides.append(
            (
                "mutmut",
                "one run of the chosen tests in a fork, after its own statistics, clean and failing runs",
                lambda: _mutmut(mutmut, project, bench.scratch / f"mutmut-{next(numbers)}"),
            )
        )
    if bench.cosmic_ray is not None:
        cosmic_ray = bench.cosmic_ray
        sides.append(
            (
                "cosmic-ray",
                "one run of the whole suite, in the source folder itself",
                lambda: _cosmic_ray(cosmic_ray, project, bench.scratch / f"cosmic-{next(numbers)}"),
            )
        )
    own_s, *others_s = in_turns((own, *(measured for _, _, measured in sides)), bench.times(1), warm_up=0)
    for (name, work, _), other_s in zip(sides, others_s, strict=True):
        yield Row(
            about=f"one mutant of schema, beside {name}",
            own=Samples.of_seconds("firsthand mutate", own_s),
            other=Samples.of_seconds(name, other_s),
            figure="ratio",
            note=f"own side: the suite broken, then whole again, in a sandbox; {name}: {work}",
        )


def _mutmut(program: Path, project: Schema, folder: Path) -> float:
    """Seconds for one mutant of `_priority`, with one child."""
    shutil.copytree(project.bare, folder)
    (folder / "setup.cfg").write_text(
        "[mutmut]\nsource_paths=schema/\npytest_add_cli_args_test_selection=test_schema.py\n"
        "also_copy=\n    test_schema.py\n    LICENSE-MIT\n    README.rst\n"
    )
    start = time.perf_counter()
    said = _run([program, "run", "--max-children", "1", "schema.x__priority__mutmut_*"], folder)
    took = time.perf_counter() - start
    mutants = set(re.findall(r"schema\.x\w*__mutmut_\d+", said))
    if not mutants:
        raise CannotRunError(f"mutmut named no mutant: {said[-300:]}")
    return took / len(mutants)


def _cosmic_ray(program: Path, project: Schema, folder: Path) -> float:
    """Seconds for one of 20 mutants, spread over the module."""
    shutil.copytree(project.bare, folder)
    python = program.parent / "python"
    (folder / "cosmic.toml").write_text(
        f'[cosmic-ray]\nmodule-path = "{MODULE}"\ntimeout = 60.0\nexcluded-modules = []\n'
        f'test-command = "{python} -m pytest -q test_schema.py"\n[cosmic-ray.distributor]\nname = "local"\n'
    )
    start = time.perf_counter()
    _run([program, "init", "cosmic.toml", "session.sqlite"], folder)
    with sqlite3.connect(folder / "session.sqlite") as session:
        jobs = [row[0] for row in session.execute("SELECT job_id FROM mutation_specs ORDER BY start_pos_row, job_id")]
        kept = {jobs[place * len(jobs) // _MUTANTS] for place in range(_MUTANTS)}
        for job in set(jobs) - kept:
            session.execute("DELETE FROM mutation_specs WHERE job_id = ?", (job,))
            session.execute("DELETE FROM work_items WHERE job_id = ?", (job,))
    session.close()
    _run([program, "exec", "cosmic.toml", "session.sqlite"], folder)
    return (time.perf_counter() - start) / len(kept)


def _run(command: Sequence[str | Path], folder: Path) -> str:
    environment: Mapping[str, str] = os.environ | {
        "PATH": f"{Path(command[0]).absolute().parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    ended = subprocess.run(
        [str(Path(command[0]).absolute()), *command[1:]],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    said = ended.stdout.decode(errors="replace")
    if ended.returncode != 0:
        raise CannotRunError(f"{Path(command[0]).name} ended with {ended.returncode}: {said.strip()[-300:]}")
    return said
