from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from firsthand.residues import Session, StateDirectory

Sleeper = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory.open(tmp_path / "state")


@pytest.fixture
def crash() -> Callable[[Session], None]:
    """Ends a session as a kill would: its descriptors are closed, and nothing else is done."""

    def end(session: Session) -> None:
        session._register.close()
        session._release()

    return end


@pytest.fixture
def sleeper() -> Iterator[Sleeper]:
    """Starts processes that sleep; ends those that are left."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: str, program: str = "import time; time.sleep(600)") -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", f"print(flush=True); {program}", *arguments],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()  # it runs now, with its own arguments
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
