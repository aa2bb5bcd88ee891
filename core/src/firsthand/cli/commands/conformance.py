"""`firsthand conformance`."""

from __future__ import annotations

import json
from pathlib import Path

from firsthand.canonical import JSONValue
from firsthand.cli.output import answers, end, lines, print_json, table
from firsthand.cli.progress import ProgressLine
from firsthand.engine.backends import examine_backend
from firsthand.engine.sealing import refuse_taken
from firsthand.errors import EXIT_GOOD, EXIT_REFUSED
from firsthand.evidence.storing import write_sealed
from firsthand.records import BatteryReport, ProbeResult
from firsthand.residues import Session, StateDirectory


def run(backend: str, out: Path | None, state: Path | None, *, as_json: bool) -> None:
    """Run the whole battery live and show every probe; ends with 3 when the backend may not be used."""
    if out is not None:
        refuse_taken(out)
    line = ProgressLine(quiet=as_json)
    with Session.open(StateDirectory.open(state)) as session:
        try:
            report = examine_backend(backend, session, progress=line.probe)
        finally:
            line.close()
    value = report.as_json()
    if out is not None:
        write_sealed(out, (json.dumps(value, indent=2, ensure_ascii=True) + "\n").encode("ascii"))
    if as_json and isinstance(value, dict):
        print_json(value)
    else:
        show(report)
    end(EXIT_GOOD if report.passed else EXIT_REFUSED)


def show(report: BatteryReport) -> None:
    """Every probe, and the verdict."""
    console = answers()
    rows = [(probe.id, probe.result, required(probe), probe.observed, probe.control) for probe in report.probes]
    console.print(table(("PROBE", "RESULT", "REQUIRED", "OBSERVED", "CONTROL"), rows))
    console.print()
    passed = sum(probe.result == "passed" for probe in report.probes)
    identity = report.backend
    named = f"{identity.name} ({identity.distribution} {identity.version})"
    verdict = "may be used" if report.passed else "may not be used"
    console.print(lines(f"{named}: {passed} of {len(report.probes)} probes passed; it {verdict}"))


def required(probe: ProbeResult) -> str:
    """How much a probe weighs."""
    return "yes" if probe.required else "no"


def probe_value(probe: ProbeResult) -> dict[str, JSONValue]:
    """One probe as `doctor` lists it."""
    return {"id": probe.id, "result": probe.result, "required": probe.required, "observed": probe.observed}
