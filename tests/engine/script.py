"""A scripted reviewer: real definition, files, ledger and evidence; only the dispatch itself is made up."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evidence.builder import FILES, definition, digest, plant
from evidence.reviews import review_evidence
from firsthand.definition import Definition, Stage, load_definition
from firsthand.engine.gating import GateAnswer, gate
from firsthand.engine.rounds import EndedRound, OpenRound, PerformDispatch, Reviewed, claim_request, run_round
from firsthand.evidence import SigningKey, seal
from firsthand.ledger import Ledger
from firsthand.records import Evidence, Judgement, Manifest, ManifestEntry
from firsthand.residues import StateDirectory
from firsthand.rules import content_digest, definition_facts, evidence_status


@dataclass
class Script:
    """A project, its state directory, and a reviewer who says what it is told to."""

    root: Path
    state: StateDirectory
    key: SigningKey | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    """Of the evidence that the reviewer brings."""

    @classmethod
    def begin(cls, folder: Path, **changes: Any) -> Script:
        root = folder / "project"
        root.mkdir()
        plant(root)
        script = cls(root, StateDirectory.open(folder / "state", source=root))
        script.define(**changes)
        return script

    @property
    def config(self) -> Path:
        return self.root / "firsthand.json"

    def define(self, **changes: Any) -> None:
        self.config.write_text(definition(**({"stages": ["final"]} | changes)))

    def definition(self) -> Definition:
        return load_definition(self.config)

    def manifest(self) -> Manifest:
        """The files as they are now."""
        entries = []
        for path in FILES:
            file = self.root / path
            if file.exists():
                raw, status = file.read_bytes(), file.stat()
                entries.append(
                    ManifestEntry(
                        path=path,
                        state="present",
                        mode=status.st_mode & 0o7777,
                        size=len(raw),
                        links=status.st_nlink,
                        sha256=digest(raw),
                    )
                )
            else:
                entries.append(ManifestEntry(path=path, state="missing", mode=None, size=None, links=None, sha256=None))
        return Manifest(entries=tuple(entries))

    def evidence(self, opened: OpenRound, verdict: str = "approved") -> Evidence:
        """Evidence of this round that keeps every rule, with the script's changes."""
        loaded, manifest = self.definition(), self.manifest()
        text = loaded.canonical.decode()
        draft = review_evidence()
        assert draft.dispatch is not None
        judgement = Judgement(verdict=verdict, summary="Said.", findings=())  # type: ignore[arg-type] # of the test's
        sizes = {entry.path: entry.size for entry in manifest.entries}
        coverage = tuple(
            one.model_copy(
                update={
                    "total_bytes": sizes[one.path],
                    "delivered_bytes": sizes[one.path] if one.whole else one.delivered_bytes,
                }
            )
            for one in draft.dispatch.coverage
        )
        fields: dict[str, Any] = {
            "run_id": loaded.document.run_id,
            "stage": opened.stage,
            "round": opened.number,
            "nonce": opened.nonce,
            "definition": text,
            "definition_digest": loaded.fingerprint,
            "manifest": manifest,
            "manifest_digest": manifest.canonical_digest(),
            "package_digest": claim_request(loaded, manifest, "final", budget_s=1).package_digest,
            "dispatch": draft.dispatch.model_copy(update={"judgement": judgement, "coverage": coverage}),
        }
        made = Evidence(**{**{name: getattr(draft, name) for name in Evidence.model_fields}, **fields, **self.changes})
        status, code = evidence_status(made, definition_facts(made.definition))
        return made.model_copy(update={"status": status, "code": code} | self.changes)

    def says(self, verdict: str = "approved") -> PerformDispatch:
        """A dispatch that ends with this verdict."""

        def dispatch(opened: OpenRound) -> Reviewed:
            opened.dispatched()
            opened.head("call", "c" * 64)
            evidence = self.evidence(opened, verdict)
            assert evidence.dispatch is not None
            return Reviewed(seal(evidence, self.key), evidence.dispatch.usage)

        return dispatch

    def review(
        self,
        verdict: str = "approved",
        *,
        stage: Stage = "final",
        dispatch: Callable[[OpenRound], Reviewed] | None = None,
        out: Path | None = None,
    ) -> EndedRound:
        """One round."""
        loaded = self.definition()
        request = claim_request(loaded, self.manifest(), stage, budget_s=60)
        assert request.content_digest == content_digest(self.manifest())
        with Ledger.open(self.state) as ledger:
            return run_round(
                self.state,
                ledger,
                request,
                dispatch or self.says(verdict),
                stages=loaded.document.stages,
                out=out,
            )

    def recover(self, number: int = 1, stage: str = "final", reason: str = "said so") -> None:
        with Ledger.open(self.state) as ledger:
            ledger.recover(self.run_id, stage, number, closed_as="abandoned", reason=reason)

    @property
    def run_id(self) -> str:
        run_id = json.loads(self.config.read_text())["runId"]
        assert isinstance(run_id, str)
        return run_id

    def gate(self, **arguments: Any) -> GateAnswer:
        return gate(self.config, state_path=self.state.path, **arguments)
