"""What importing a plug-in does, seen from outside: in a child process that is bounded and thrown away."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firsthand.plugins import inspection_child
from firsthand.plugins.plugin import MEMBERS, BrokenPlugin, Plugin, canonical_name, one_line

LIMIT_MESSAGE_BYTES: Final = 256 * 1024

_UNFINISHED: Final = "it ended the process that imported it"


@dataclass(frozen=True, slots=True)
class Observation:
    """What an inspection saw."""

    plugin: Plugin
    problem: BrokenPlugin | None
    """Null when it imports, has the members its group demands, and leaves the importing process as it was."""


def inspect_plugin(plugin: Plugin, *, timeout_s: float = 10.0, memory_bytes: int = 1024**3) -> Observation:
    """Import and construct a plug-in in a child process and judge what comes of it.

    The child is `python -I -B` with this process's `sys.path`, an environment of nothing but PATH and LANG, a session
    of its own, limits on memory (data segment), processor time and file size; it is killed, with its process group,
    when it has answered or when the time is up. Only a complete framed message with this inspection's own number
    counts: a silent exit with status 0 is a failure. This process is left as it was, whatever the plug-in does.

    It is an observation, not a sandbox: the plug-in has this user's rights over files while it runs.

    Args:
        plugin: as `discover` found it.
        timeout_s: from the start of the child to its kill.
        memory_bytes: of data the child may have (not enforced on Windows; by the kernel's rules on macOS).

    Raises:
        Nothing for what the plug-in does: that is the observation.
    """
    nonce = secrets.token_hex(16)
    request = {
        "nonce": nonce,
        "path": [entry or os.getcwd() for entry in sys.path],
        "group": plugin.group,
        "name": plugin.name,
        "value": plugin.value,
        "members": MEMBERS.get(plugin.group, ()),
        "memory_bytes": memory_bytes,
        "cpu_s": int(timeout_s) + 2,
    }
    try:
        raw, status = _converse(json.dumps(request).encode() + b"\n", timeout_s)
    except OSError as error:
        reason = f"it could not be inspected: no process could be started ({error.strerror})"
        return Observation(plugin, plugin.broken(reason, "free some processes or memory and try again"))
    answer = _unframe(raw, nonce)
    if answer is None:
        return Observation(plugin, plugin.broken(_silence(status, timeout_s)))
    reason = _judge(plugin, answer)
    return Observation(plugin, plugin.broken(reason) if reason else None)


def _converse(request: bytes, timeout_s: float) -> tuple[bytes, int | None]:
    """Start the child and read its answer; the status is null when it had to be killed for time."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    child = subprocess.Popen(
        [sys.executable, "-I", "-B", str(Path(inspection_child.__file__).resolve())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**kept, "LANG": "C.UTF-8"},
        cwd=os.path.abspath(os.sep),
        start_new_session=True,
    )
    assert child.stdin is not None  # noqa: S101 - asked for above; for the type checker
    assert child.stdout is not None  # noqa: S101 - the same
    deadline = time.monotonic() + timeout_s
    try:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(request)
            child.stdin.flush()
        raw = _read(child.stdout.fileno(), deadline) if os.name == "posix" else _read_all(child, deadline)
        late = time.monotonic() >= deadline
    finally:
        # Killed before it is waited for: as long as the leader is unreaped, its group's number is nobody else's. A
        # child that had ended by itself keeps its own status.
        _kill(child)
        status = child.wait()
        # Closed last: the end of standard input is a signal to the child, not part of the conversation.
        child.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
    return raw, None if late else status


def _read(descriptor: int, deadline: float) -> bytes:
    """Until the message is whole, the stream ends, or the limit or the deadline is reached.

    It does not wait for the end of the stream: a process that the plug-in left behind may hold the pipe open.
    """
    raw = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while len(raw) < LIMIT_MESSAGE_BYTES and (left_s := deadline - time.monotonic()) > 0:
            if not selector.select(left_s):
                continue
            piece = os.read(descriptor, 65536)
            if not piece:
                break
            raw += piece
            head, _, payload = raw.partition(b"\n")
            if head.endswith(b" %d" % len(payload)):
                break
    return bytes(raw)


def _read_all(child: subprocess.Popen[bytes], deadline: float) -> bytes:
    """For Windows, whose pipes can't be waited for with a timeout."""
    try:
        return child.communicate(timeout=max(0.0, deadline - time.monotonic()))[0]
    except subprocess.TimeoutExpired as error:
        return error.stdout or b""


def _kill(child: subprocess.Popen[bytes]) -> None:
    if os.name != "posix":
        child.kill()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


def _unframe(raw: bytes, nonce: str) -> dict[str, object] | None:
    head, _, payload = raw.partition(b"\n")
    if head != f"firsthand-inspection {nonce} {len(payload)}".encode():
        return None
    try:
        answer = json.loads(payload)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _silence(status: int | None, timeout_s: float) -> str:
    if status is None:
        return f"importing it did not end within {timeout_s:g} s"
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return f"{_UNFINISHED} ({name})"
    return f"{_UNFINISHED} (exit status {status})"


def _judge(plugin: Plugin, answer: dict[str, object]) -> str:
    """Why the plug-in can't be used, or nothing."""
    stage = answer.get("stage")
    if stage != "loaded":
        what = {"import": "importing it failed", "call": "constructing it failed"}.get(
            str(stage), "it fails when asked"
        )
        return one_line(f"{what}: {answer.get('error')}: {answer.get('message')}")
    if answer.get("missing"):
        return one_line(f"{plugin.value} lacks {', '.join(map(str, _list(answer['missing'])))}")
    if canonical_name(str(answer.get("name"))) != canonical_name(plugin.name):
        return one_line(f"it calls itself {answer.get('name')!r}, not as its entry point does")
    effects = _list(answer.get("effects"))
    if effects:
        return one_line(f"importing it alters the process: {', '.join(map(str, effects))}")
    return ""


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
