"""How reports are shown: a table for people, one JSON file for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.row import Report, Row, Samples
from rich.console import Console
from rich.table import Table

_WIDTH = 150
_COLOURS = {"within": "green", "within by minimum": "yellow", "over": "red"}


def show(report: Report, console: Console | None = None) -> None:
    """Print one benchmark's table to standard output."""
    console = console or _console()
    if report.reason:
        console.print(f"{report.name}: not run: {report.reason}", markup=False)
        console.print()
        return
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left", title=report.name)
    for name in ("WHAT", "OWN SIDE", "OTHER SIDE", "FIGURE", "BY MINIMA", "LIMIT", ""):
        table.add_column(name, overflow="fold")
    for row in report.rows:
        table.add_row(
            row.about,
            _side(row, row.own),
            _side(row, row.other),
            _figure(row, row.by_median),
            _figure(row, row.by_least),
            "" if row.limit is None else _figure(row, row.limit),
            f"[{_COLOURS[row.verdict]}]{row.verdict}[/]" if row.verdict else "",
        )
    console.print(table)
    for row in report.rows:
        if row.note:
            console.print(f"  {row.about}: {row.note}", markup=False)
    console.print(f"  measured in {report.seconds:.0f} s", markup=False)
    console.print()


def as_json(report: Report) -> dict[str, object]:
    """Everything that was measured, each value included."""
    return {
        "benchmark": report.name,
        "notRun": report.reason or None,
        "seconds": round(report.seconds, 3),
        "rows": [
            {
                "about": row.about,
                "figure": row.figure,
                "unit": row.unit,
                "byMedian": round(row.by_median, 4),
                "byMinimum": round(row.by_least, 4),
                "limit": row.limit,
                "verdict": row.verdict or None,
                "note": row.note or None,
                "own": _values(row.own),
                "other": None if row.other is None else _values(row.other),
            }
            for row in report.rows
        ],
    }


def write_json(path: Path, found: dict[str, str | int | float], reports: Sequence[Report]) -> None:
    """Write machine and reports to a file."""
    answer = {"machine": found, "benchmarks": [as_json(report) for report in reports]}
    path.write_text(json.dumps(answer, indent=1) + "\n", encoding="utf-8")


def _console() -> Console:
    console = Console(highlight=False, emoji=False)
    return console if console.is_terminal else Console(highlight=False, emoji=False, width=_WIDTH)


def _side(row: Row, samples: Samples | None) -> str:
    if samples is None:
        return ""
    return (
        f"{samples.name}: {_number(samples.median)} {row.unit} (min {_number(samples.least)}, n={len(samples.values)})"
    )


def _figure(row: Row, value: float) -> str:
    match row.figure:
        case "ratio":
            return f"{value:.2f} x"
        case "added":
            return f"{value:+.1f} {row.unit}"
        case "own":
            return f"{_number(value)} {row.unit}"


def _number(value: float) -> str:
    return f"{value:,.2f}" if abs(value) < 10 else f"{value:,.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def _values(samples: Samples) -> dict[str, object]:
    return {
        "name": samples.name,
        "median": round(samples.median, 4),
        "minimum": round(samples.least, 4),
        "values": [round(value, 4) for value in samples.values],
    }
