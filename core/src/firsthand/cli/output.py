"""How answers are shown: tables on standard output, progress and diagnostics on standard error, JSON on demand."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from firsthand.canonical import JSONValue
from firsthand.cli.text import json_line, one_line, visible

PLAIN_WIDTH: Final = 20_000
"""Columns when nobody's terminal decides: so wide that nothing is folded. A row stays a line, and foreign text never
comes to the beginning of one, where a log might take it for a command."""

COLOURS: Final[Mapping[str, str]] = {
    "passed": "green",
    "detected": "green",
    "available": "green",
    "valid": "green",
    "removed": "green",
    "ended": "green",
    "failed": "red",
    "survived": "red",
    "not-exercised": "red",
    "refused": "red",
    "invalid": "red",
    "broken": "red",
    "unknown": "yellow",
    "inconclusive": "yellow",
    "no-control": "yellow",
    "not-run": "yellow",
    "kept": "yellow",
    "left": "yellow",
}


def answers() -> Console:
    """The console for standard output; plain in a pipe, without colour under NO_COLOR."""
    return _console(stderr=False, live=sys.stdout.isatty())


def diagnostics() -> Console:
    """The console for standard error."""
    return _console(stderr=True, live=sys.stderr.isatty())


def print_json(value: Mapping[str, JSONValue]) -> None:
    """One JSON object on one line; nothing in it can act on a terminal or a log."""
    sys.stdout.write(json_line(value))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table of foreign text made harmless; a cell that is a known status gets its colour."""
    result = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for column in columns:
        result.add_column(column, overflow="fold")
    for row in rows:
        result.add_row(*(_cell(value) for value in row))
    return result


def lines(text: str) -> Text:
    """Foreign text of several lines, made harmless."""
    return Text(visible(text))


def end(status: int) -> NoReturn:
    """End the command with an exit status."""
    raise typer.Exit(status)


class _Console(Console):
    """A console whose broken pipe is an error like any other, and no exit of its own."""

    def on_broken_pipe(self) -> None:
        """See `rich.console.Console`: called while the error is handled."""
        raise  # noqa: PLE0704 # the error that is being handled


def _console(*, stderr: bool, live: bool) -> Console:
    width = None if live else PLAIN_WIDTH
    return _Console(stderr=stderr, highlight=False, emoji=False, markup=False, width=width)


def _cell(value: str) -> Text:
    return Text(one_line(value, 400), style=COLOURS.get(value, ""))
