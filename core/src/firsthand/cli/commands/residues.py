"""`firsthand residues`."""

from __future__ import annotations

from pathlib import Path

from firsthand.canonical import JSONValue
from firsthand.cli.output import answers, end, lines, print_json, table
from firsthand.errors import EXIT_GOOD, EXIT_UNKNOWN
from firsthand.isolation.battery.traces import sweep as sweep_traces
from firsthand.isolation.battery.traces import usual_places
from firsthand.residues import Residue, StateDirectory, list_residues, sweep


def run(state: Path | None, *, clean: bool, as_json: bool) -> None:
    """List or clean; ends with 4 when the end of something could not be established."""
    directory = StateDirectory.open(state)
    if clean:
        found = [*sweep(directory, clean_kept=True), *(_trace(path) for path in sweep_traces(usual_places()))]
    else:
        found = list_residues(directory)
    if as_json:
        print_json({"residues": [as_value(residue) for residue in found]})
    elif not found:
        answers().print(lines("nothing was left behind"))
    else:
        rows = [(one.kind, one.state, one.where, one.session, one.reason) for one in found]
        answers().print(table(("KIND", "STATE", "WHERE", "SESSION", "REASON"), rows))
    end(EXIT_UNKNOWN if any(residue.state == "unknown" for residue in found) else EXIT_GOOD)


def _trace(path: str) -> Residue:
    return Residue("tree", path, "", "removed", "left by a battery that was ended")


def as_value(residue: Residue) -> dict[str, JSONValue]:
    """One residue as JSON."""
    return {
        "kind": residue.kind,
        "where": residue.where,
        "session": residue.session,
        "state": residue.state,
        "reason": residue.reason,
    }
