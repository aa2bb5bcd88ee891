"""A stand-in for the CLI that misbehaves as its name says: `claude-MODE`. Standard library only.

It answers `--version` and `--help` like a CLI that fits, and writes its process id to `pid` beside itself.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

VERSION = "2.1.332"
FLAGS = (
    "--allowedTools --disable-slash-commands --effort --json-schema --mcp-config --model --output-format "
    "--permission-mode --permission-prompts --print --restricted --setting-sources --strict-mcp-config "
    "--system-prompt --tools --verbose"
)
TOOLS = ["StructuredOutput", *(f"mcp__cm_review__{name}" for name in ("read_file", "run_check", "mutate_check"))]
ANSWER = {"verdict": "approved", "summary": "fine", "findings": []}
SERVER = {"name": "cm_review", "status": "connected"}


def emit(event: Mapping[str, Any]) -> None:
    """One event on standard output."""
    sys.stdout.write(json.dumps(event, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def init(**changes: Any) -> None:
    """The first event."""
    emit(
        {
            "type": "system",
            "subtype": "init",
            "session_id": "s",
            "tools": TOOLS,
            "mcp_servers": [SERVER],
            "claude_code_version": VERSION,
            "permissionMode": "dontAsk",
            "skills": [],
            "slash_commands": [],
            **changes,
        }
    )


def answer(**changes: Any) -> None:
    """The use of the answer's tool, and the CLI's word that it was taken."""
    use = {"type": "tool_use", "id": "t1", "name": "StructuredOutput", "input": ANSWER}
    emit({"type": "assistant", "message": {"content": [use]}})
    emit({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", **changes}]}})


def result(**changes: Any) -> None:
    """The final result."""
    emit(
        {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "api_error_status": None,
            "permission_denials": [],
            "result": "",
            "usage": {},
            "structured_output": ANSWER,
            **changes,
        }
    )


def good(**changes: Any) -> None:
    """A whole success, with some fields of the result changed."""
    init()
    answer()
    result(**changes)


def transcript() -> Path:
    """The folder that transcripts go to."""
    folder = Path(os.environ["CLAUDE_CONFIG_DIR"]) / "projects" / "work"
    folder.mkdir(parents=True)
    return folder


def flood() -> None:
    """100 MB of events."""
    init()
    line = json.dumps({"type": "assistant", "message": {"content": [{"type": "text", "text": "x" * 4000}]}}) + "\n"
    for _ in range(100 * 1024 * 1024 // len(line)):
        sys.stdout.write(line)


def long_line() -> None:
    """One line of 70 MB."""
    init()
    for _ in range(70):
        sys.stdout.write("x" * 1024 * 1024)


def deaf() -> None:
    """Ignores SIGTERM, in a child as well, and never says a word."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.fork()
    time.sleep(600)


def sparse() -> None:
    """A transcript of 10 GiB that takes no room."""
    init()
    with (transcript() / "s.jsonl").open("wb") as file:
        file.truncate(10 * 1024**3)
    time.sleep(600)


def many() -> None:
    """Files that are too much only together."""
    init()
    folder = transcript()
    for number in range(65):
        (folder / f"{number}.jsonl").write_bytes(b"x" * 1024 * 1024)
    time.sleep(600)


def torn() -> None:
    """The result's line is cut off."""
    init()
    answer()
    sys.stdout.write('{"type":"result","subtype":"success","structured_ou')


MODES: dict[str, tuple[Callable[[], object], ...]] = {
    "good": (good,),
    "silent": (),
    "garbage": (partial(sys.stdout.write, "Segmentation fault? No: \x00\x1b[31mgarbage\n"),),
    "hang": (partial(time.sleep, 600),),
    "deaf": (deaf,),
    "flood": (flood,),
    "long-line": (long_line,),
    "sparse": (sparse,),
    "many": (many,),
    "torn": (torn,),
    "pending": (partial(init, mcp_servers=[{**SERVER, "status": "pending"}]), answer, result),
    "failed": (partial(init, mcp_servers=[{**SERVER, "status": "failed"}]), answer, result),
    "two-of-three": (partial(init, tools=TOOLS[:3]), answer, result),
    "one-more": (partial(init, tools=[*TOOLS, "Bash"]), answer, result),
    "another-server": (partial(init, mcp_servers=[SERVER, {**SERVER, "name": "x"}]), answer, result),
    "skilled": (partial(init, skills=["x"]), answer, result),
    "other-version": (partial(init, claude_code_version="9.9.9"), answer, result),
    "other-mode": (partial(init, permissionMode="bypassPermissions"), answer, result),
    "no-init": (answer, result),
    "no-structure": (partial(good, structured_output=None, result='```json\n{"verdict": "approved"}\n```'),),
    "unasked": (init, result),
    "not-taken": (init, partial(answer, is_error=True), result),
    "two-results": (good, result),
    "error": (partial(good, is_error=True, subtype="error_during_execution"),),
    "silent-error": (partial(good, is_error=True),),
    "max-turns": (partial(good, is_error=True, subtype="error_max_turns"),),
    "denied": (partial(good, permission_denials=[{"tool_name": "Bash"}]),),
    "exit-3": (good, partial(os._exit, 3)),
    "killed": (good, lambda: os.kill(os.getpid(), signal.SIGKILL)),
    "separators": (partial(good, result="a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg", session="\u2028"),),
}


def main() -> None:
    """Answer about itself, or misbehave."""
    me = Path(sys.argv[0])
    if "--version" in sys.argv:
        print(f"{VERSION} (Claude Code)")  # noqa: T201 - what it is for
    elif "--help" in sys.argv:
        print(FLAGS)  # noqa: T201 - what it is for
    else:
        (me.parent / "pid").write_text(str(os.getpid()))
        for step in MODES[me.name.removeprefix("claude-")]:
            step()


if __name__ == "__main__":
    main()
