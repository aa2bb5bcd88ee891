"""`firsthand runs`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from firsthand.canonical import JSONValue
from firsthand.cli.output import answers, end, lines, print_json, table
from firsthand.definition import load_definition
from firsthand.errors import EXIT_GOOD, UsageError
from firsthand.ledger import Entry, Ledger, Round, Run
from firsthand.residues import StateDirectory


@dataclass(frozen=True, slots=True)
class Which:
    """Which run is meant: by its id, else by the definition."""

    run_id: str | None
    config: Path
    state: Path | None

    def name(self) -> str:
        """The run's id."""
        if self.run_id is not None:
            return self.run_id
        return load_definition(self.config, state_dir=self.state).document.run_id


def list_runs(state: Path | None, *, as_json: bool) -> None:
    """Each run with the latest round of each of its stages."""
    with Ledger.open(StateDirectory.open(state)) as ledger:
        found = [(run, _latest(ledger.rounds(run.run_id))) for run in ledger.runs()]
    if as_json:
        listed: list[JSONValue] = [
            {
                "runId": run.run_id,
                "fingerprint": run.fingerprint,
                "stages": [
                    {"stage": one.facts.stage, "round": one.facts.round, "state": one.facts.state} for one in latest
                ],
            }
            for run, latest in found
        ]
        print_json({"runs": listed})
    elif not found:
        answers().print(lines("no run was ever begun"))
    else:
        rows = [(run.run_id, run.fingerprint[:12], _told(latest)) for run, latest in found]
        answers().print(table(("RUN", "DEFINITION", "LATEST ROUNDS"), rows))
    end(EXIT_GOOD)


def show(run_id: str | None, config: Path, state: Path | None, *, as_json: bool) -> None:
    """All that is known of one run."""
    name = Which(run_id, config, state).name()
    with Ledger.open(StateDirectory.open(state)) as ledger:
        run = ledger.run(name)
        if run is None:
            raise UsageError("this run was never begun", where=name, next_step="see `firsthand runs list`")
        rounds, entries, head = ledger.rounds(name), ledger.entries(name), ledger.latest()
    if as_json:
        print_json(
            {
                **_run(run),
                "rounds": [_round(one) for one in rounds],
                "entries": [{"entry": one.seq, "kind": one.kind, "body": one.body} for one in entries],
                "ledger": {"entry": head.seq, "head": head.digest},
            }
        )
        end(EXIT_GOOD)
    console = answers()
    console.print(lines(f"run {run.run_id}, definition {run.fingerprint}"))
    rows = [
        (
            one.facts.stage,
            str(one.facts.round),
            one.facts.state,
            one.facts.code,
            one.facts.closed_as or "",
            one.facts.reason,
            (one.facts.evidence_digest or "")[:12],
        )
        for one in rounds
    ]
    console.print(table(("STAGE", "ROUND", "STATE", "CODE", "CLOSED AS", "REASON", "EVIDENCE"), rows))
    console.print()
    console.print(table(("ENTRY", "WHAT", "ABOUT"), [_entry_row(one) for one in entries]))
    console.print(lines(f"latest entry of the ledger: {head.seq} {head.digest}"))
    end(EXIT_GOOD)


def recover(which: Which, stage: str, number: int, closed_as: str, reason: str, *, as_json: bool) -> None:
    """Close a round by an operator's word."""
    if closed_as not in ("failed", "abandoned"):
        raise UsageError(
            f"a round can't be closed as {closed_as!r}", where="--as", next_step="choose failed or abandoned"
        )
    with Ledger.open(StateDirectory.open(which.state)) as ledger:
        found = ledger.recover(
            which.name(), stage, number, closed_as="failed" if closed_as == "failed" else "abandoned", reason=reason
        )
    if as_json:
        print_json({"status": "closed", **_round(found)})
    else:
        told = f"{found.run_id}, {stage}, round {number}: {found.facts.state}, closed as {closed_as}"
        answers().print(lines(f"{told}; it approves nothing and stays used up"))
    end(EXIT_GOOD)


def backup(file: Path, state: Path | None, *, as_json: bool) -> None:
    """Copy the ledger."""
    with Ledger.open(StateDirectory.open(state)) as ledger:
        ledger.backup(file)
        head = ledger.latest()
    if as_json:
        print_json({"status": "passed", "file": str(file), "ledger": {"entry": head.seq, "head": head.digest}})
    else:
        answers().print(lines(f"copied up to entry {head.seq} or before: {file}"))
    end(EXIT_GOOD)


def _latest(rounds: Sequence[Round]) -> list[Round]:
    latest = {one.facts.stage: one for one in rounds}
    return list(latest.values())


def _told(latest: Sequence[Round]) -> str:
    return ", ".join(f"{one.facts.stage} {one.facts.round}: {one.facts.state}" for one in latest)


def _run(run: Run) -> dict[str, JSONValue]:
    return {"runId": run.run_id, "fingerprint": run.fingerprint, "packageDigest": run.package_digest}


def _round(one: Round) -> dict[str, JSONValue]:
    facts = one.facts
    return {
        "runId": one.run_id,
        "stage": facts.stage,
        "round": facts.round,
        "state": facts.state,
        "code": facts.code,
        "verdict": facts.verdict,
        "nonce": facts.nonce,
        "manifestDigest": facts.manifest_digest,
        "evidence": one.evidence_name,
        "sha256": facts.evidence_digest,
        "closedAs": facts.closed_as,
        "reason": facts.reason,
        "pid": one.owner.identity.pid,
    }


def _entry_row(entry: Entry) -> tuple[str, str, str]:
    body = entry.body if isinstance(entry.body, dict) else {}
    row = body.get("row")
    about = row if isinstance(row, dict) else body
    told = " ".join(str(about[key]) for key in ("stage", "round", "state", "what", "code", "digest") if about.get(key))
    return str(entry.seq), entry.kind, f"{body.get('at', '')} {told}".strip()
