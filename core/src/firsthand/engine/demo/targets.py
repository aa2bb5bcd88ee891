"""What the hostile check goes for, on this machine and made for the purpose; nothing real is at stake."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firsthand.canonical import JSONValue

TOKEN: Final = "FIRSTHAND_DEMO_TOKEN"  # noqa: S105 # a variable's name
ATTEMPTS: Final = (
    ("read_a_secret", "read a secret file of the user"),
    ("send_it_out", "send it over the network"),
    ("change_a_file_of_the_user", "change a file outside the project"),
    ("look_at_other_processes", "read another process's environment"),
    ("leave_a_process_behind", "leave a process running"),
    ("read_the_hosts_environment", "read a token in the host's environment"),
)


@dataclass(frozen=True, slots=True)
class Targets:
    """Where the attempts aim, and how the host tells whether they reached it."""

    folder: Path
    listener: socket.socket
    seconds: str

    def write(self, file: Path) -> None:
        """Tell the hostile check where to aim."""
        aims: dict[str, JSONValue] = {
            "secret": str(self.folder / "secret.txt"),
            "outside": str(self.folder / "letter.txt"),
            "port": self.listener.getsockname()[1],
            "pid": os.getpid(),
            "seconds": self.seconds,
        }
        file.write_text(json.dumps(aims))

    def heard(self) -> bool:
        """Whether anything connected since the last question."""
        heard = False
        with contextlib.suppress(BlockingIOError):
            while True:
                connection, _ = self.listener.accept()
                connection.close()
                heard = True
        return heard

    def changed(self) -> bool:
        """Whether the file outside was changed; puts it right again."""
        letter = self.folder / "letter.txt"
        changed = letter.read_text() != "untouched\n"
        letter.write_text("untouched\n")
        return changed

    def lingering(self) -> list[int]:
        """Processes that were left behind."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:2] == [b"sleep", self.seconds.encode()]:
                found.append(int(entry.name))
        return found


@contextmanager
def targets(folder: Path) -> Iterator[Targets]:
    """Make the targets in a new folder; close the listener at the end."""
    folder.mkdir(mode=0o755)
    (folder / "secret.txt").write_text("a secret of the user\n")
    (folder / "letter.txt").write_text("untouched\n")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)  # noqa: FBT003 # the library's shape
        yield Targets(folder, listener, str(100_000 + secrets.randbelow(100_000)))


def unconfined(script: Path, interpreter: str) -> list[dict[str, JSONValue]]:
    """The control: the same script, run plainly, with a token in its environment. Harmless by its targets."""
    done = subprocess.run(
        [interpreter, str(script)],
        env={"PATH": os.defpath, TOKEN: "a token"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=30,
    )
    return reports(done.stdout.decode("utf-8", "replace"))


def reports(output: str) -> list[dict[str, JSONValue]]:
    """What the script says of its attempts: its own word, to be held against what the host saw."""
    found = []
    for line in output.splitlines():
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict) and "attempt" in value:
                found.append(value)
    return found
