"""What every benchmark is given: where to work, how often to measure, and what else was named on the command line."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.row import CannotRunError


@dataclass(frozen=True, slots=True)
class Bench:
    """One run of the benchmarks.

    Attributes:
        scratch: an empty private folder of this benchmark alone, removed afterwards.
        state: a state directory that all benchmarks share, so that the battery runs once.
        cache: a folder that outlives the run, for what has to be fetched.
        rounds: how often a short side is measured; None for each benchmark's own number.
        schema: an unpacked sdist of `schema`; None to fetch it.
        srt, mutmut, cosmic_ray: programs of peers; None leaves them out.
    """

    scratch: Path
    state: Path
    cache: Path
    rounds: int | None = None
    schema: Path | None = None
    srt: Path | None = None
    mutmut: Path | None = None
    cosmic_ray: Path | None = None

    def times(self, usual: int) -> int:
        """How often to measure: what the command line says, else the benchmark's own number."""
        return self.rounds if self.rounds is not None else usual

    def program(self) -> Path:
        """The installed `firsthand`, beside the interpreter that runs the benchmarks.

        Raises:
            CannotRunError: it is not installed there.
        """
        program = Path(sys.executable).parent / "firsthand"
        if not program.is_file():
            raise CannotRunError(f"no firsthand beside {sys.executable}; run `make setup`")
        return program

    def environment(self) -> dict[str, str]:
        """For programs that are compared by their start: bytecode is kept, for both sides in the same new folder.

        Some machines export PYTHONDONTWRITEBYTECODE; there an editable install would be compiled anew at each start
        while what it is compared with is not.
        """
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return kept | {"PYTHONPYCACHEPREFIX": str(self.scratch / "bytecode"), "NO_COLOR": "1", "COLUMNS": "100"}


def needs(program: str) -> str:
    """The absolute path of a program that a benchmark compares with.

    Raises:
        CannotRunError: it is not on PATH.
    """
    found = shutil.which(program)
    if found is None:
        raise CannotRunError(f"{program} is not on PATH")
    return found
