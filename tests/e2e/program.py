"""The installed program, driven as its users drive it: a process, arguments, two streams and an exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCRIPT = Path(sys.executable).with_name("firsthand")
COMMAND = (str(SCRIPT),) if SCRIPT.exists() else (sys.executable, "-m", "firsthand.cli")


@dataclass(frozen=True)
class Answer:
    """What one run of the program said."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one JSON object that it must be."""
        assert self.out.count("\n") == 1, self.out
        assert self.out.endswith("\n")
        return json.loads(self.out)


@dataclass(frozen=True)
class Program:
    """The program with a state directory of its own.

    Attributes:
        state: given to it by FIRSTHAND_STATE.
        command: what starts it.
        environment: its whole environment, but for the state directory.
        user: uid and gid that it runs as; this process's own when None.
    """

    state: Path
    command: tuple[str, ...] = COMMAND
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    user: int | None = None

    def __call__(self, *arguments: str | Path, cwd: Path, timeout_s: float = 120, **added: str) -> Answer:
        """Run it to its end. `added` are further environment variables."""
        done = subprocess.run(
            self._argv(arguments),
            cwd=cwd,
            env=self._environment(added),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=timeout_s,
            user=self.user,
            group=self.user,
            extra_groups=None if self.user is None else [],
        )
        return Answer(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def start(self, *arguments: str | Path, cwd: Path, **added: str) -> subprocess.Popen[bytes]:
        """Start it in a session of its own; the caller ends it."""
        return subprocess.Popen(
            self._argv(arguments),
            cwd=cwd,
            env=self._environment(added),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def _argv(self, arguments: tuple[str | Path, ...]) -> list[str]:
        return [*self.command, *map(str, arguments)]

    def _environment(self, added: Mapping[str, str]) -> dict[str, str]:
        return {**self.environment, "FIRSTHAND_STATE": str(self.state), **added}

    def sessions(self) -> list[str]:
        """What is left of sessions, dead or living."""
        folder = self.state / "sessions"
        return sorted(os.listdir(folder)) if folder.exists() else []


def carrying(mark: str) -> list[int]:
    """Living processes with this text among their arguments or in their environment, this one never."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            try:
                known = Path(f"/proc/{name}/cmdline").read_bytes() + Path(f"/proc/{name}/environ").read_bytes()
            except OSError:
                continue
            if mark.encode() in known:
                found.append(int(name))
    return found
