"""From the process's arguments to its exit status."""

from __future__ import annotations

import json
import os
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

import typer

from firsthand.cli.text import visible
from firsthand.errors import EXIT_UNKNOWN, EXIT_USAGE, FirsthandError


class _TerminatedError(KeyboardInterrupt):
    """SIGTERM or SIGHUP arrived: unwinds like Ctrl-C, so that everything is ended and removed on the way."""


def run_program(app: typer.Typer) -> NoReturn:
    """Run the command that the arguments name and end the process.

    Every error of ours becomes its code, message, place and next step on standard error (with `--json`: one object on
    standard output) and the exit status of its code. An interrupted command ends with 4: what it would have said is
    unknown.
    """
    for number in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, number):
            signal.signal(getattr(signal, number), _terminate)
    try:
        status = app(standalone_mode=False)
    except FirsthandError as error:
        report(error, as_json="--json" in sys.argv)
        status = error.exit_status
    except KeyboardInterrupt:
        sys.stderr.write("firsthand: interrupted; commands are ended and copies removed, the result is unknown\n")
        status = EXIT_UNKNOWN
    except BrokenPipeError:
        # The reader of our answer went away; nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = EXIT_UNKNOWN
    except Exception as error:
        status = _usage(error)
        if status is None:
            raise
    sys.exit(status if isinstance(status, int) else 0)


def report(error: FirsthandError, *, as_json: bool) -> None:
    """Say what failed, where, and what to do next."""
    if as_json:
        refused = {"status": "refused", "code": error.code, "message": error.message, "next": error.next_step}
        answer = {**refused, "where": error.where}
        sys.stdout.write(json.dumps(answer, ensure_ascii=True) + "\n")
        return
    lines = [f"error: {error.message}", f"  code:  {error.code}"]
    if error.where:
        lines.append(f"  where: {error.where}")
    lines.append(f"  next:  {error.next_step}")
    sys.stderr.write(visible("\n".join(lines)) + "\n")


def _usage(error: Exception) -> int | None:
    """Exit status for what the command-line library raises; None for anything else."""
    show: Any = getattr(error, "show", None)
    if callable(show) and hasattr(error, "format_message"):
        show()
        return EXIT_USAGE
    if type(error).__name__ in ("Exit", "Abort"):
        return int(getattr(error, "exit_code", EXIT_UNKNOWN))
    return None


def _terminate(number: int, _frame: FrameType | None) -> NoReturn:
    raise _TerminatedError(number)
