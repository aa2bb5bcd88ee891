"""From the process's arguments to its exit status."""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn

import typer

from firsthand.cli.text import json_line, visible
from firsthand.errors import EXIT_UNKNOWN, EXIT_USAGE, FirsthandError

if TYPE_CHECKING:  # `--help` speaks no canonical JSON
    from firsthand.canonical import JSONValue

_INTERNAL: Final = "a fault of Firsthand itself; what the command would have said is unknown"


def run_program(app: typer.Typer) -> NoReturn:
    """Run the command that the arguments name and end the process.

    Every error of ours becomes its code, message, place and next step on standard error (with `--json`: one object on
    standard output) and the exit status of its code. An interrupted command ends with 4, as does one that meets a fault
    of ours: what it would have said is unknown, and no fault may look like a negative answer.
    """
    interruptions: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> NoReturn:
        """SIGTERM and SIGHUP unwind like Ctrl-C, so that everything is ended and removed on the way."""
        interruptions.append(number)
        raise KeyboardInterrupt

    _open_standard_streams()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        # What the caller has us ignore (`nohup`, a shell's background job) stays ignored.
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN:
            signal.signal(getattr(signal, name), interrupt)
    as_json = "--json" in sys.argv
    try:
        status = app(standalone_mode=False)
        # Here, where a reader that went away can still be told apart, and not at the interpreter's end.
        sys.stdout.flush()
    except FirsthandError as error:
        report(error, as_json=as_json)
        status = error.exit_status
    except KeyboardInterrupt:
        status = EXIT_UNKNOWN
    except (BrokenPipeError, SystemExit):
        # The reader of our answer went away; nothing more can be said to it. (The library exits with 1 for that.)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = EXIT_UNKNOWN
    except Exception as error:  # noqa: BLE001 # whatever comes, the exit status must not say "negative"
        status = _of_the_library(error, as_json=as_json)
        if status is None:
            status = _fault(error, as_json=as_json)
    if interruptions:
        # Told apart here because the command-line library makes an exit status of its own of an interrupt.
        sys.stderr.write("firsthand: interrupted; commands are ended and copies removed, the result is unknown\n")
        status = EXIT_UNKNOWN
    sys.exit(status if isinstance(status, int) else 0)


def _open_standard_streams() -> None:
    """Put /dev/null where the caller closed a standard stream, and let no character fail on the others.

    Without the first, the next file that is opened, evidence perhaps, would take its place and get what is meant for
    it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)  # noqa: FBT003 # the library's shape
    os.close(descriptor)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 # for the rest of the process
    for stream in (sys.stdout, sys.stderr):
        # What the reader's encoding does not have is shown as an escape; it must not end the command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def report(error: FirsthandError, *, as_json: bool) -> None:
    """Say what failed, where, and what to do next."""
    if as_json:
        _refused(error.code, error.message, error.next_step, error.where)
        return
    lines = [f"error: {error.message}", f"  code:  {error.code}"]
    if error.where:
        lines.append(f"  where: {error.where}")
    lines.append(f"  next:  {error.next_step}")
    sys.stderr.write(visible("\n".join(lines)) + "\n")


def _of_the_library(error: Exception, *, as_json: bool) -> int | None:
    """Exit status for what the command-line library raises; None for anything else."""
    show: Any = getattr(error, "show", None)
    told: Any = getattr(error, "format_message", None)
    if callable(show) and callable(told):
        if as_json:
            _refused("usage", str(told()), "see `firsthand --help`", "")
        else:
            show()
        return EXIT_USAGE
    if type(error).__name__ in ("Exit", "Abort"):
        return int(getattr(error, "exit_code", EXIT_UNKNOWN))
    return None


def _fault(error: Exception, *, as_json: bool) -> int:
    sys.stderr.write(visible("".join(traceback.format_exception(error))))
    sys.stderr.write(f"firsthand: {_INTERNAL}. Next: report it with the lines above\n")
    if as_json:
        next_step = "report it with the traceback on standard error"
        sys.stdout.write(json_line({"status": "unknown", "code": "internal", "message": _INTERNAL, "next": next_step}))
    return EXIT_UNKNOWN


def _refused(code: str, message: str, next_step: str, where: str) -> None:
    answer: dict[str, JSONValue] = {"status": "refused", "code": code, "message": message, "next": next_step}
    sys.stdout.write(json_line({**answer, "where": where}))
