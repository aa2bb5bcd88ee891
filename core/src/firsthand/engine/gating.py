"""The gate: reads the definition, the ledger and the evidence, and asks the rules whether all of it is green.

Source: the contract, Ledger and gate. It runs nothing, and works where no backend does. It guards against slips and
stale evidence, not against somebody with the same rights on the files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firsthand.canonical import JSONValue
from firsthand.definition import Definition, load_definition, mutation_fault
from firsthand.evidence.errors import EvidenceError
from firsthand.evidence.keys import PublicKey
from firsthand.evidence.storing import read_sealed
from firsthand.evidence.verification import Verification
from firsthand.evidence.verifying import verify
from firsthand.ledger import Head, Ledger, Round, RunBindingError
from firsthand.records import Evidence
from firsthand.residues import StateDirectory
from firsthand.rules import (
    Conclusion,
    Problem,
    Requirement,
    RoundFacts,
    approval_problem,
    belonging_problems,
    changed_paths,
    gate_conclusion,
    requirement_problems,
)

CLOSING: Final = "green is no approval of a requirement, an installation or a release"
"""Said with every answer."""

_NAME: Final = re.compile(r"(\d{3,})-([0-9a-f]{16})\.json")


@dataclass(frozen=True, slots=True)
class StageAnswer:
    """What the gate found out about one stage.

    Attributes:
        stage: its name.
        rounds: all of its rounds.
        problems: everything against it; empty exactly when it is green.
        evidence: of the latest round, verified; None where there is none that counts.
        path: where that evidence should lie; None before sealing.
        stale: whether the files differ from the evidence's; None where nobody could look.
        superseded: whether a later stage was approved after this one: then its files may have changed since.
        changed: registered paths that changed between this stage's evidence and that of the last stage.
        signed: whether a trusted key signed the evidence.
    """

    stage: str
    rounds: tuple[RoundFacts, ...]
    problems: tuple[Problem, ...]
    evidence: Evidence | None = None
    path: Path | None = None
    stale: bool | None = None
    superseded: bool = False
    changed: tuple[str, ...] = ()
    signed: bool = False

    @property
    def conclusion(self) -> Conclusion:
        """Its status and code."""
        return gate_conclusion(self.problems)

    @property
    def changed_tests(self) -> tuple[str, ...]:
        """Those of `changed` that are tests by their names."""
        faults = ((path, mutation_fault(path)) for path in self.changed)
        return tuple(path for path, fault in faults if fault is not None and fault[0] == "test-file")

    @property
    def closed(self) -> tuple[RoundFacts, ...]:
        """Rounds that an operator closed, with the reasons."""
        return tuple(one for one in self.rounds if one.closed_as is not None)

    def as_json(self) -> dict[str, JSONValue]:
        """One of the answer's `stages`."""
        status, code = self.conclusion
        latest = self.rounds[-1] if self.rounds else None
        isolation = self.evidence.isolation if self.evidence is not None else None
        dispatch = self.evidence.dispatch if self.evidence is not None else None
        return {
            "stage": self.stage,
            "status": status,
            "code": code,
            "round": None if latest is None else latest.round,
            "state": None if latest is None else latest.state,
            "evidence": None if self.path is None else str(self.path),
            "sha256": None if latest is None else latest.evidence_digest,
            "stale": self.stale,
            "superseded": self.superseded,
            "signed": self.signed,
            "isolation": None
            if isolation is None
            else {"level": isolation.level, "reason": isolation.reason, "auth": isolation.auth},
            "execution": None if self.evidence is None else self.evidence.execution,
            "unprobed": [] if self.evidence is None else list(self.evidence.unprobed),
            "unread": [] if dispatch is None else list(dispatch.unread),
            "changed": list(self.changed),
            "changedTests": list(self.changed_tests),
            "closed": [
                {"round": one.round, "state": one.state, "as": one.closed_as, "reason": one.reason}
                for one in self.closed
            ],
            "problems": [{"code": one.code, "where": one.where, "message": one.message} for one in self.problems],
        }


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """The gate's answer about one run.

    Attributes:
        run_id: the run.
        fingerprint: of the definition at hand.
        requirements: what was asked for beside the usual.
        stages: in the definition's order.
        head: the ledger's latest entry.
    """

    run_id: str
    fingerprint: str
    requirements: tuple[Requirement, ...]
    stages: tuple[StageAnswer, ...]
    head: Head

    @property
    def conclusion(self) -> Conclusion:
        """Refused, else negative, else unknown, else passed."""
        return gate_conclusion(problem for stage in self.stages for problem in stage.problems)

    def as_json(self) -> dict[str, JSONValue]:
        """The JSON shape of the contract, with more fields."""
        status, code = self.conclusion
        return {
            "status": status,
            "code": code,
            "runId": self.run_id,
            "fingerprint": self.fingerprint,
            "require": list(self.requirements),
            "stages": [stage.as_json() for stage in self.stages],
            "ledger": {"entry": self.head.seq, "head": self.head.digest},
            "note": CLOSING,
        }


@dataclass(frozen=True)
class _Gate:
    """What is at hand while the stages are judged."""

    definition: Definition
    state: StateDirectory
    package_digest: str | None
    requirements: tuple[Requirement, ...]
    keys: tuple[PublicKey, ...]
    evidence_names: tuple[str, ...]


def gate(
    config: Path,
    *,
    state_path: Path | None,
    expected_fingerprint: str | None = None,
    requirements: Collection[Requirement] = (),
    trusted_keys: Sequence[PublicKey] = (),
) -> GateAnswer:
    """Judge a run.

    Green is a stage whose latest round is approved, with evidence that is there, has the ledger's digest, is valid and
    of this very round, and whose bytes nobody has rejected since an operator last closed a rejection. The last stage's
    evidence must be fresh: the files are still those that it is about. An earlier stage was reviewed before the work
    that followed; where the last stage's approval came after it, what changed between the two is listed instead.

    Args:
        config: the definition file.
        state_path: the private state directory, or None for the usual place.
        expected_fingerprint: what the definition must have, from a place that the change under review can't reach.
        requirements: see `rules.requirement_problems`.
        trusted_keys: keys obtained elsewhere; only `signed` among the requirements makes a signature a must.

    Raises:
        DefinitionError: the definition is refused.
        RunBindingError: it is not the expected one, or not the one that the run was begun with.
        FirsthandError: state directory or ledger can't be used.
    """
    definition = load_definition(config, state_dir=state_path)
    run_id = definition.document.run_id
    _refuse_fingerprint(definition, expected_fingerprint)
    state = StateDirectory.open(state_path, source=definition.root)
    # Listed before the ledger is read: a round that begins in between is then no stranger.
    evidence_names = tuple(sorted(os.listdir(state.evidence)))
    with Ledger.open(state) as ledger:
        bound, rounds, head = ledger.run(run_id), ledger.rounds(run_id), ledger.latest()
    if bound is not None and bound.fingerprint != definition.fingerprint:
        raise RunBindingError(
            f"the run {run_id!r} was begun with another definition (fingerprint {bound.fingerprint[:12]}…, now "
            f"{definition.fingerprint[:12]}…)",
            where="runId",
            next_step="restore the definition that the run was begun with, or choose a new runId",
        )
    at_hand = _Gate(
        definition=definition,
        state=state,
        package_digest=None if bound is None else bound.package_digest,
        requirements=tuple(dict.fromkeys(requirements)),
        keys=tuple(trusted_keys),
        evidence_names=evidence_names,
    )
    stages = definition.document.stages
    last = _judge(at_hand, stages[-1], rounds, last=None)
    earlier = [_judge(at_hand, stage, rounds, last=(last, _claimed(rounds, stages[-1]))) for stage in stages[:-1]]
    return GateAnswer(run_id, definition.fingerprint, at_hand.requirements, (*earlier, last), head)


def _judge(
    at_hand: _Gate, stage: str, all_rounds: tuple[Round, ...], *, last: tuple[StageAnswer, int] | None
) -> StageAnswer:
    """Judge one stage.

    Args:
        at_hand: what is the same for all.
        stage: its name.
        all_rounds: of the run.
        last: for an earlier stage, the last stage's answer and when its latest round was claimed.
    """
    rounds = tuple(one for one in all_rounds if one.facts.stage == stage)
    facts = tuple(one.facts for one in rounds)
    # 1. Nothing in the state directory that the ledger has never heard of.
    problems = list(_unknown_evidence(at_hand, stage, facts))
    # 2. The latest round is an approval, and no standing rejection is over the same bytes.
    problem = approval_problem(facts)
    if problem is not None:
        return StageAnswer(stage, facts, (*problems, problem), path=_path(at_hand, rounds))
    latest, path = rounds[-1], _path(at_hand, rounds)
    superseded = last is not None and not last[0].problems and last[1] > _claimed(all_rounds, stage)
    # 3. The evidence is there, with the ledger's digest, valid, and fresh unless a later stage's approval took over.
    found = _verified(at_hand, path, latest.facts, look=not superseded)
    problems += found.problems
    evidence = found.evidence
    if evidence is None:
        return StageAnswer(stage, facts, tuple(problems), path=path, stale=found.stale)
    # 4. It is of this round of this run.
    problems += belonging_problems(
        evidence,
        latest.facts,
        run_id=at_hand.definition.document.run_id,
        fingerprint=at_hand.definition.fingerprint,
        package_digest=at_hand.package_digest,
    )
    # 5. What the caller demands beyond that.
    problems += requirement_problems(evidence, at_hand.requirements, signed=found.signed)
    after = last[0].evidence if last is not None else None
    changed = () if after is None else changed_paths(evidence.manifest, after.manifest)
    return StageAnswer(
        stage, facts, tuple(problems), evidence, path, found.stale, superseded, changed, signed=found.signed
    )


def _verified(at_hand: _Gate, path: Path | None, facts: RoundFacts, *, look: bool) -> Verification:
    """Verify a round's evidence; a file that is not there or not the ledger's is invalid evidence."""
    if path is None:
        return _invalid("evidence", "the ledger knows no evidence of this round")
    try:
        raw = read_sealed(path)
    except EvidenceError as error:
        return _invalid(str(path), f"the evidence of this round can't be read: {error.message}")
    root = at_hand.definition.root if look else None
    found = verify(raw, trusted_keys=at_hand.keys, root=root)
    if found.valid and found.digest != facts.evidence_digest:
        return _invalid(str(path), f"its digest is {found.digest}, and the ledger's is {facts.evidence_digest}")
    return found


def _invalid(where: str, message: str) -> Verification:
    return Verification(valid=False, stale=None, signed=False, problems=(Problem("evidence_invalid", where, message),))


def _path(at_hand: _Gate, rounds: tuple[Round, ...]) -> Path | None:
    """Where the latest round's evidence should lie. Only a plain name in the evidence's folder is followed."""
    name = rounds[-1].evidence_name if rounds else None
    return None if name is None else at_hand.state.evidence / Path(name).name


def _claimed(rounds: tuple[Round, ...], stage: str) -> int:
    """When the latest round of a stage was claimed, by the ledger's own count; 0 for never."""
    numbers = [one.fence for one in rounds if one.facts.stage == stage]
    return numbers[-1] if numbers else 0


def _unknown_evidence(at_hand: _Gate, stage: str, rounds: tuple[RoundFacts, ...]) -> list[Problem]:
    """Evidence of rounds that the ledger does not know: it is a copy from before them."""
    known = {(one.round, one.nonce[:16]) for one in rounds}
    prefix = f"{at_hand.definition.document.run_id}-review-{stage}-"
    problems = []
    for name in at_hand.evidence_names:
        match = _NAME.fullmatch(name.removeprefix(prefix)) if name.startswith(prefix) else None
        if match is not None and (int(match[1]), match[2]) not in known:
            message = "evidence of a round that the ledger does not know: the ledger is older than it"
            problems.append(Problem("evidence_invalid", name, message))
    return problems


def _refuse_fingerprint(definition: Definition, expected: str | None) -> None:
    if expected is not None and expected.strip().lower() != definition.fingerprint:
        raise RunBindingError(
            f"the definition has the fingerprint {definition.fingerprint}, expected is {expected.strip()}",
            where="--expect-fingerprint",
            next_step="restore the definition, or take the fingerprint from the definition that was agreed on",
        )
