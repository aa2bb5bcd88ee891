"""A reviewer program without a model: plays the script that it is given, well or badly. Standard library only.

Its command line is `fake_program.py FOLDER`, its input a script as JSON; it starts the relay, makes the script's calls,
keeps a transcript in FOLDER/transcript.jsonl and prints one result line.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Relay:
    """The script's end of one relay."""

    def __init__(self, argv: list[str], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.next_id = 0

    def start(self) -> bool:
        answer = self.ask(
            "initialize",
            {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "fake", "version": "0"}},
        )
        if answer is None:
            return False
        self.send({"method": "notifications/initialized"})
        return True

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any], *, wait: bool = True) -> dict[str, Any] | None:
        self.next_id += 1
        try:
            self.send({"id": self.next_id, "method": method, "params": params})
        except OSError:
            return None
        assert self.process.stdout is not None
        while wait:
            line = self.process.stdout.readline()
            if not line:
                return None
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == self.next_id:
                return message
        return None


def say(event: dict[str, Any]) -> None:
    os.write(1, json.dumps(event, ensure_ascii=False).encode() + b"\n")


def hang() -> None:
    time.sleep(600)


def ignore_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hang()


def flood(piece: bytes) -> None:
    while True:
        os.write(1, piece)


def garbage() -> None:
    os.write(1, b"\xff\xfe not json\n{{{\n")
    sys.exit(0)


def big_transcript(folder: Path) -> None:
    with (folder / "transcript.jsonl").open("wb") as file:
        file.truncate(64 * 1024 * 1024 + 1)
    hang()


def many_files(folder: Path) -> None:
    for number in range(66):
        (folder / f"part-{number}").write_bytes(b"x" * 1024 * 1024)
    hang()


def leave_the_group(folder: Path) -> None:
    """Start a grandchild in a session of its own, which the group's end does not reach."""
    script = "import time; time.sleep(600)"
    subprocess.Popen([sys.executable, "-c", script, str(folder), "left"], start_new_session=True, env=os.environ)


def misbehave(fault: str, folder: Path) -> None:
    """What goes wrong before anything else."""
    faults: dict[str, Callable[[], None]] = {
        "": lambda: None,
        "hang": hang,
        "ignore-sigterm": ignore_sigterm,
        "flood": lambda: flood((b"x" * 1023 + b"\n") * 64),
        "one-line": lambda: flood(b"x" * 65536),
        "garbage": garbage,
        "silent": lambda: sys.exit(0),
        "big-transcript": lambda: big_transcript(folder),
        "many-files": lambda: many_files(folder),
        "leave-the-group": lambda: leave_the_group(folder),
    }
    faults[fault]()


class Play:
    """One script being played."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.script = script
        self.transcript: list[dict[str, Any]] = []
        self.relay = self.connect() if script.get("relay") else None
        if self.relay is not None and script.get("list"):
            listed = self.relay.ask("tools/list", {})
            assert listed is not None
            say({"type": "tools", "tools": listed["result"]["tools"]})

    def connect(self) -> Relay | None:
        relay = Relay(self.script["relay"], self.script.get("environment", {}))
        if relay.start():
            return relay
        say({"type": "init", "server": "failed"})
        return None

    def step(self, call: Any) -> None:
        if call == "second-relay":
            self.connect()
        elif call == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif call == "respawn":
            assert self.relay is not None
            self.relay.process.kill()
            self.relay.process.wait()
            self.relay = self.connect()
        else:
            self.call(call)

    def call(self, call: dict[str, Any]) -> None:
        tool, arguments = call["tool"], call["arguments"]
        if not call.get("unlogged"):
            self.transcript.append({"use": tool, "arguments": arguments})
        if self.relay is not None and not call.get("claimed"):
            answer = self.relay.ask("tools/call", {"name": tool, "arguments": arguments}, wait=not call.get("leave"))
            say({"type": "answer", "answer": answer})


def main() -> int:
    folder = Path(sys.argv[1])
    script: dict[str, Any] = json.loads(sys.stdin.buffer.read())
    misbehave(script.get("fault", ""), folder)
    play = Play(script)
    for call in script.get("calls", []):
        play.step(call)
    log = folder / "transcript.jsonl"
    if script.get("transcript", "file") == "file":
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in play.transcript)
        log.write_text(text + script.get("transcript_tail", ""), "utf-8")
    elif script["transcript"] == "link":
        (folder / "real.jsonl").write_text("")
        log.symlink_to(folder / "real.jsonl")
    elif script["transcript"] == "fifo":
        os.mkfifo(log)
    for _ in range(script.get("results", 1)):
        say({"type": "result", "answer": script.get("answer")})
    if script.get("half"):
        os.write(1, b'{"type": "resu')
    return int(script.get("exit", 0))


if __name__ == "__main__":
    sys.exit(main())
