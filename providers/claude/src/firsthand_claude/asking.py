"""Asking the CLI about itself: by the host's launcher, or, where only its version is wanted, directly."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Final

from firsthand.review.interface import Launch, Launcher
from firsthand_claude.program import Ask, SilentError

_LIMIT_BYTES: Final = 1024 * 1024
_LIMIT_S: Final = 20.0
_PATIENCE_S: Final = 2.0
_QUIET: Final = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
}


def asking(launcher: Launcher, home: Path, cwd: Path) -> Ask:
    """Ask through the host's launcher, with an empty home; at most 1 MiB and 20 s."""

    def ask(program: Path, option: str) -> str:
        launch = Launch(
            argv=(str(program), option),
            environment={**_QUIET, "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home)},
            cwd=cwd,
            timeout_s=_LIMIT_S,
            line_limit_bytes=_LIMIT_BYTES,
            output_limit_bytes=_LIMIT_BYTES,
        )
        with launcher.start(launch) as process:
            said = b"\n".join(process.lines())
            ended = process.wait()
        if ended.kind != "exited" or ended.code != 0:
            how = ended.detail or (f"exit status {ended.code}" if ended.kind == "exited" else ended.kind)
            raise SilentError(f"{option} ended with {how}")
        return said.decode("utf-8", "replace")

    return ask


def ask_version(program: Path, option: str) -> str:
    """Ask without a launcher: for `capability`, which has none; with no home that could be read or written.

    Raises:
        SilentError: it can't be started, fails, floods, or takes longer than 20 s.
    """
    environment = {**_QUIET, "HOME": os.devnull, "CLAUDE_CONFIG_DIR": os.devnull}
    try:
        process = subprocess.Popen(
            [str(program), option],
            env=environment,
            cwd=program.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise SilentError(f"it can't be started: {error.strerror}") from error
    said: list[bytes] = []
    # A program that floods is cut off at the limit; one that holds the pipe for ever must not hold us.
    reader = threading.Thread(target=lambda: said.append(_head_of(process)), daemon=True)
    reader.start()
    reader.join(_LIMIT_S)
    late = not said
    _end_group(process, patient=not late)
    if late:
        raise SilentError(f"{option} took longer than {_LIMIT_S:.0f} s")
    if process.returncode != 0:
        raise SilentError(f"{option} ended with status {process.returncode}")
    return said[0].decode("utf-8", "replace")


def _head_of(process: subprocess.Popen[bytes]) -> bytes:
    if process.stdout is None:
        return b""
    with process.stdout as pipe:
        return pipe.read(_LIMIT_BYTES)


def _end_group(process: subprocess.Popen[bytes], *, patient: bool) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        if patient:
            process.wait(_PATIENCE_S)
            return
    # It is not collected yet, so its number is nobody else's.
    if os.name == "posix":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
