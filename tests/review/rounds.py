"""One round at a time: a yard, a provider, the real launcher and residue register, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from checks.yard import Yard
from firsthand.canonical import canonical_digest
from firsthand.definition import parse_definition
from firsthand.evidence.package import package_digest
from firsthand.records import Budget, Evidence, Isolation
from firsthand.residues import Session, StateDirectory
from firsthand.review.diagnosis import expected_schemas_digest
from firsthand.review.interface import Diagnosis, Host, Launcher, PluginIdentity, Provider, ReviewKind
from firsthand.review.launching import PlainLauncher
from firsthand.review.preflight import Rehearsal, run_preflight
from firsthand.review.session import Bench, OpenLauncher, Reviewed, Round, review_round
from firsthand.rules import definition_facts, evidence_status
from firsthand.snapshot import freeze
from review.court import FILES, Logged
from review.fake import PLUGIN, FakeProvider

LOOK = "head -n 1 value.py | grep -q def && grep -q 'x \\* 2' value.py"
NONCE = "7" * 64
HOST = Host(environment={}, home=None)
BUDGET = Budget(timeout_ms=60_000, max_turns=40)


def diagnosed(kind: ReviewKind) -> Diagnosis:
    """What a preflight of the fake provider brings; a test shows that it does."""
    return Diagnosis(
        schema_version=1,
        kind=kind,
        provider=PLUGIN,
        program=FakeProvider().program,
        model="scripted-reviewer",
        effort="high",
        flag_set_digest=canonical_digest(["FOLDER"]),
        tool_schemas_digest=expected_schemas_digest(kind),
        tools=("mutate_check", "read_file", "run_check") if kind == "tools" else (),
        budget=BUDGET,
    )


@dataclass
class Hall:
    """Where rounds are held.

    Attributes:
        session: the residue register, and where everything temporary lies.
        yard: None for a tool-less review.
    """

    session: Session
    yard: Yard | None
    folder: Path
    kept: Logged = field(default_factory=Logged)
    document: Mapping[str, Any] = field(default_factory=dict)
    open_launcher: OpenLauncher | None = None

    def preflight(
        self, provider: Provider, plugin: PluginIdentity = PLUGIN, budget: Budget = BUDGET, host: Host = HOST
    ) -> Diagnosis:
        rehearsal = Rehearsal(
            plugin=plugin,
            kind="tools" if self.yard is not None else "tool-less",
            model="scripted-reviewer",
            effort="high",
            budget=budget,
            host=host,
            private=self.session.tree("preflight"),
            door=self.session.tree("door"),
        )
        return run_preflight(provider, rehearsal, self.open_launcher or self.launcher)

    def launcher(self, private: Path, deadline: float) -> Launcher:
        return PlainLauncher(self.session, private, deadline)

    def hold(
        self, provider: Provider, diagnosis: Diagnosis | None = None, *, stage: str = "final", **changes: Any
    ) -> Reviewed:
        """One round with this provider; by default with the diagnosis that its preflight would bring."""
        timeout_ms = changes.pop("timeout_ms", None)
        diagnosis = diagnosis or diagnosed("tools" if self.yard is not None else "tool-less")
        if timeout_ms is not None:
            diagnosis = diagnosis.model_copy(update={"budget": Budget(timeout_ms=timeout_ms, max_turns=40)})
        bench = Bench(self.yard.ground, self.yard.registered) if self.yard is not None else None
        definition = self.yard.definition if self.yard is not None else parse_definition(self._raw(), self.folder)
        snapshot = self.yard.snapshot if self.yard is not None else freeze(definition, self.session.tree("snapshot"))
        round_ = Round(
            document=definition.document,
            snapshot=snapshot,
            stage=stage,
            number=1,
            nonce=NONCE,
            diagnosis=diagnosis,
            plugin=PLUGIN,
            host=HOST,
            auth=None,
            private=self.session.tree("run"),
            door=self.session.tree("door"),
        )
        return review_round(provider, replace(round_, **changes), bench, self.open_launcher or self.launcher, self.kept)

    def conclude(self, reviewed: Reviewed, stage: str = "final") -> tuple[str, str]:
        """Status and code of the evidence that this round makes."""
        evidence = self.evidence(reviewed, stage)
        return evidence_status(evidence, definition_facts(evidence.definition))

    def evidence(self, reviewed: Reviewed, stage: str = "final") -> Evidence:
        assert self.yard is not None
        self.yard.kept = self.kept
        draft = self.yard.evidence("review")
        return draft.model_copy(
            update={
                "stage": stage,
                "round": 1,
                "nonce": NONCE,
                "package_digest": package_digest(draft.manifest, self.yard.definition.document),
                "isolation": Isolation(level="app-layer", reason="no-sandbox-provider", auth="provider-env"),
                "dispatch": reviewed.dispatch,
            }
        )

    def _raw(self) -> bytes:
        return json.dumps(self.document).encode()


@contextmanager
def open_hall(
    tmp_path: Path, yard: Callable[..., Yard] | None, files: Mapping[str, bytes | str] = FILES, **fields: Any
) -> Iterator[Hall]:
    """A hall over a yard with one quick check, or without checks; at its end nothing may be left."""
    fields = {"command": ("/bin/sh", "-c", LOOK), "runner": "exit"} | fields
    made = yard(files, fields.pop("command"), **fields) if yard is not None else None
    state = StateDirectory.open(tmp_path / "state", source=made.project if made is not None else tmp_path / "elsewhere")
    with Session.open(state) as session:
        yield Hall(session, made, tmp_path)
        left = session.close()
    assert left == ()
    assert made is None or not made.processes.alive
