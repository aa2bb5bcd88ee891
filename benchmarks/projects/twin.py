"""A bare twin of every run: an observer plug-in that runs the same command without a sandbox, right after each run.

So both sides are measured turn by turn within one plan, and the program itself stays exactly what is installed: it
finds the observer as it finds any other.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.projects.schema import MODULE, Schema

_MODULE: Final = """
import json, os, subprocess, time
from firsthand.plugins import hookimpl

class Twin:
    def __init__(self):
        with open(os.path.join(os.path.dirname(__file__), "asked.json")) as file:
            self.asked = json.load(file)
        self.runs = []
        self.own_s = 0.0
        self.mutated = 0
        with open(self.asked["file"], "rb") as file:
            self.original = file.read()

    @hookimpl
    def check_finished(self, run):
        start = time.perf_counter()
        bare_s = None
        if run.purpose == "mutated":
            self.write(self.asked["mutants"][self.mutated].encode())
            self.mutated += 1
            bare_s = self.run()
            self.write(self.original)
        elif run.purpose != "control":
            bare_s = self.run()
        outcome = run.command.outcome
        self.runs.append({"purpose": run.purpose, "sandboxed_s": outcome.duration_ms / 1000, "bare_s": bare_s})
        self.own_s += time.perf_counter() - start

    @hookimpl
    def evidence_sealed(self, path):
        with open(self.asked["answer"], "w") as file:
            json.dump({"runs": self.runs, "own_s": self.own_s}, file)

    def write(self, data):
        with open(self.asked["file"], "wb") as file:
            file.write(data)

    def run(self):
        start = time.perf_counter()
        subprocess.run(self.asked["command"], cwd=self.asked["folder"], env=self.asked["environment"],
                       stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return time.perf_counter() - start
"""


@dataclass(frozen=True, slots=True)
class Twin:
    """An observer made ready for one plan.

    Attributes:
        variables: to be added to the program's environment.
        answer: file with what it measured, once the evidence is sealed.
    """

    variables: dict[str, str]
    answer: Path

    def read(self) -> tuple[list[dict[str, object]], float]:
        """Each run with its twin's time, and the seconds that the observer itself took in all."""
        found = json.loads(self.answer.read_text(encoding="utf-8"))
        return found["runs"], float(found["own_s"])


def bare_environment(folder: Path) -> dict[str, str]:
    """What a bare run is given: the variables of the sandbox, so that both sides do the same work."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def make_twin(project: Schema, plan: list[dict[str, str]], folder: Path) -> Twin:
    """Write the observer as an installed distribution into a new folder, and what it should run."""
    metadata = folder / "firsthand_bench_twin-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: firsthand-bench-twin\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[firsthand.observers]\nbench-twin = firsthand_bench_twin:Twin\n")
    (folder / "firsthand_bench_twin.py").write_text(_MODULE, encoding="utf-8")
    home = folder / "home"
    home.mkdir()
    text = (project.bare / MODULE).read_text(encoding="utf-8")
    asked = {
        "folder": str(project.bare),
        "file": str(project.bare / MODULE),
        "mutants": [text.replace(each["old"], each["new"]) for each in plan],
        "command": project.command,
        "environment": bare_environment(home),
        "answer": str(folder / "answer.json"),
    }
    (folder / "asked.json").write_text(json.dumps(asked), encoding="utf-8")
    variables = {"PYTHONPATH": str(folder)}
    return Twin(variables=variables, answer=folder / "answer.json")
