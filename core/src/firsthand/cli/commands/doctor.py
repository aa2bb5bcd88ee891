"""`firsthand doctor`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from firsthand.canonical import JSONValue
from firsthand.cli.commands.conformance import probe_value
from firsthand.cli.commands.residues import as_value
from firsthand.cli.output import answers, end, lines, print_json, table
from firsthand.cli.progress import ProgressLine
from firsthand.engine.backends import survey_backends
from firsthand.engine.sealing import this_platform
from firsthand.errors import EXIT_GOOD, EXIT_REFUSED
from firsthand.isolation.selection import Assessment
from firsthand.plugins import PROVIDERS, discover
from firsthand.residues import Residue, Session, StateDirectory, list_residues


def run(state: Path | None, *, as_json: bool) -> None:
    """Examine this machine live; ends with 3 when no backend can be used."""
    directory = StateDirectory.open(state)
    left = list_residues(directory)
    line = ProgressLine(quiet=as_json)
    with Session.open(directory) as session:
        try:
            found = survey_backends(session, progress=line.probe)
        finally:
            line.close()
    selected = next((one for one in found if not one.reason), None)
    if as_json:
        print_json(_answer(found, selected, left))
    else:
        _show(found, selected, left, directory)
    end(EXIT_GOOD if selected is not None else EXIT_REFUSED)


def _answer(found: tuple[Assessment, ...], selected: Assessment | None, left: list[Residue]) -> dict[str, JSONValue]:
    return {
        "platform": this_platform().as_json(),
        "selected": None if selected is None else {**_named(selected), "level": "os-sandbox"},
        "backends": [_backend(one) for one in found],
        "providers": _providers(),
        "auth": {},
        "residues": [as_value(residue) for residue in left],
    }


def _named(one: Assessment) -> dict[str, JSONValue]:
    return {"name": one.name, "distribution": one.distribution, "version": one.version}


def _backend(one: Assessment) -> dict[str, JSONValue]:
    result: dict[str, JSONValue] = {**_named(one), "available": not one.reason}
    if one.reason:
        result["reason"] = one.reason
        result["next"] = one.next_step
    if one.available is not None and one.available.launcher is not None:
        result["launcher"] = one.available.launcher.as_json()
    if one.available is not None:
        result["notEnforced"] = list[JSONValue](one.available.not_enforced)
    result["probes"] = [] if one.report is None else [probe_value(probe) for probe in one.report.probes]
    return result


def _providers() -> list[JSONValue]:
    catalogue = discover(PROVIDERS)
    usable: list[JSONValue] = [
        {"name": one.name, "distribution": one.distribution, "version": one.version} for one in catalogue.plugins
    ]
    broken: list[JSONValue] = [
        {"name": one.name, "distribution": " and ".join(one.owners), "reason": one.reason} for one in catalogue.broken
    ]
    return usable + broken


def _show(
    found: tuple[Assessment, ...], selected: Assessment | None, left: list[Residue], directory: StateDirectory
) -> None:
    console = answers()
    machine = this_platform()
    console.print(lines(f"{machine.system} {machine.release} {machine.machine}, Python {machine.python}"))
    console.print(lines(f"state: {directory.path}"))
    console.print()
    rows = [
        (one.name, f"{one.distribution} {one.version}", "available" if not one.reason else "refused", _probes(one))
        for one in found
    ]
    console.print(table(("BACKEND", "DISTRIBUTION", "STATUS", "PROBES"), rows))
    for one in found:
        # Once one can be used, what the others lack is of no concern, unless a battery has found it.
        if one.reason and (selected is None or one.report is not None):
            console.print(lines(f"{one.name}: {one.reason}\n  next: {one.next_step}"))
        if one.available is not None and one.available.launcher is not None:
            launcher = one.available.launcher
            console.print(lines(f"{one.name}: {launcher.path} {launcher.version}, sha256 {launcher.sha256[:16]}…"))
        for limit in one.available.not_enforced if one.available is not None else ():
            console.print(lines(f"{one.name}: not enforced here: {limit}"))
    console.print()
    rows = [(one.kind, one.state, one.where, one.reason) for one in left]
    if rows:
        console.print(table(("RESIDUE", "STATE", "WHERE", "REASON"), rows))
        console.print(lines("next: firsthand residues --clean"))
    if selected is None:
        console.print(lines("refused: no backend can be used, so no check runs here"))
    else:
        console.print(lines(f"checks run in {selected.name}: os-sandbox"))


def _probes(one: Assessment) -> str:
    if one.report is None:
        return "-"
    counted = Counter(probe.result for probe in one.report.probes)
    others = "".join(f", {count} {result}" for result, count in sorted(counted.items()) if result != "passed")
    return f"{counted['passed']} of {len(one.report.probes)} passed{others}"
