"""Standard streams that the caller closed, and signals that it ignores."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="descriptors are closed by a POSIX shell here")

PROGRAM = """
import os
import sys
import typer
from firsthand.cli.running import run_program
from firsthand.errors import UsageError

app = typer.Typer()

@app.command()
def command(kind: str) -> None:
    with open(sys.argv[0] + ".evidence", "w") as file:
        print("for standard output")
        print("for standard error", file=sys.stderr)
        os.write(1, b"for standard output\\n")
        file.write("evidence only")
    if kind == "fails":
        raise UsageError("it failed", where="here", next_step="do that")
    if kind == "faults":
        raise ValueError("a fault")
    if kind == "signal":
        os.kill(os.getpid(), int(os.environ["SIGNAL"]))

run_program(app)
"""


def run(tmp_path: Path, kind: str, redirections: str, **environment: str) -> tuple[int, str]:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    ended = subprocess.run(
        ["/bin/sh", "-c", f'"$@" {redirections}', "sh", sys.executable, str(file), kind],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
        check=False,
        timeout=60,
    )
    return ended.returncode, (tmp_path / "program.py.evidence").read_text()


@pytest.mark.parametrize("redirections", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("kind", "status"), [("works", 0), ("fails", 2), ("faults", 4)])
def test_closed_streams_change_no_answer_and_write_into_no_file(
    tmp_path: Path, redirections: str, kind: str, status: int
) -> None:
    assert run(tmp_path, kind, redirections) == (status, "evidence only")


@pytest.mark.parametrize("name", ["SIGHUP", "SIGINT", "SIGTERM"])
def test_an_ignored_signal_stays_ignored(tmp_path: Path, name: str) -> None:
    number = int(getattr(signal, name))
    ignoring = f"trap '' {number}; exec"
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    for trap, status in ((ignoring, 0), ("exec", 4)):
        ended = subprocess.run(
            ["/bin/sh", "-c", f'{trap} "$@"', "sh", sys.executable, str(file), "signal"],
            capture_output=True,
            env={**os.environ, "SIGNAL": str(number)},
            check=False,
            timeout=60,
        )
        assert ended.returncode == status
