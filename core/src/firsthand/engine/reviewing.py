"""`firsthand preflight` and `firsthand review`: what the reviewer's program shows, and one dispatched round."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firsthand.definition import load_definition
from firsthand.engine.checking import keep_if_unknown
from firsthand.engine.preparation import Prepared, Run, furnish, open_run
from firsthand.engine.providers import choose_leg, find_provider, this_host
from firsthand.engine.rounds import EndedRound, OpenRound, claim_request, run_round
from firsthand.engine.rounds import Reviewed as DispatchedEvidence
from firsthand.engine.sealing import Destination, Review, Sealed, foresee, seal_bytes
from firsthand.errors import UsageError
from firsthand.files import FileRefusedError, read_path
from firsthand.isolation.battery.run import Progress
from firsthand.ledger import Ledger
from firsthand.mutation import Registered
from firsthand.plugins import Observers
from firsthand.records import Budget, Isolation
from firsthand.residues import Session, StateDirectory
from firsthand.review.diagnosis import parse_diagnosis
from firsthand.review.interface import (
    AuthLeg,
    Diagnosis,
    Failure,
    Host,
    Launch,
    Launcher,
    PluginIdentity,
    Process,
    Provider,
    ReviewError,
)
from firsthand.review.launching import PlainLauncher
from firsthand.review.preflight import Rehearsal
from firsthand.review.preflight import run_preflight as rehearse
from firsthand.review.session import Bench, Round, refuse_set_up, review_round
from firsthand.snapshot import check_source

_LIMIT_DIAGNOSIS_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Reviewing:
    """A round with its evidence.

    Attributes:
        ended: what the ledger says of it.
        sealed: the evidence and where it lies.
        failure: why there is no review; None where there is one.
        changed_tests: registered tests that differ from those that the stage before was reviewed with.
    """

    ended: EndedRound
    sealed: Sealed
    failure: Failure | None
    changed_tests: tuple[str, ...]


def run_preflight(
    config: Path,
    *,
    model: str,
    effort: str,
    budget: Budget,
    program: Path | None,
    state_path: Path | None,
    host: Host | None = None,
) -> Diagnosis:
    """Have the definition's reviewer prove what it shows to a model. Contacts nobody, uses no login.

    Args:
        config: the definition file; it is read, and nothing of it is executed or frozen.
        model: as the user gives it.
        effort: as the user gives it, or empty.
        budget: what reviews with this diagnosis may spend.
        program: the reviewer's program, or None: the provider looks for it.
        state_path: the private state directory, or None for the usual place.
        host: what the provider may look at; this machine by default.

    Raises:
        ReviewError: the provider is missing or incapable, or the wire did not show what it should.
        FirsthandError: the definition or the state directory is refused.
    """
    definition = load_definition(config, state_dir=state_path, executes=False)
    provider, plugin = find_provider(definition.document)
    state = StateDirectory.open(state_path, source=definition.root)
    with Session.open(state) as session:
        rehearsal = Rehearsal(
            plugin=plugin,
            kind="tool-less" if definition.document.review_verification is None else "tools",
            model=model,
            effort=effort,
            budget=budget,
            host=host or this_host(program),
            private=session.tree("reviewer"),
            door=session.tree("door"),
        )
        return rehearse(provider, rehearsal, lambda private, deadline: PlainLauncher(session, private, deadline))


def run_review(  # noqa: PLR0913 # one argument an option of the command, and what the caller watches with
    config: Path,
    review_file: Path,
    stage: str,
    *,
    state_path: Path | None,
    out: Path | None,
    key: Path | None,
    observers: Observers,
    progress: Progress | None = None,
    host: Host | None = None,
) -> Reviewing:
    """Claim one round, dispatch it and seal what came of it; a failure of program, model or network is sealed as such.

    Whatever can be refused is refused before the claim, so that a foreseeable fault costs no round.

    Args:
        config: the definition file.
        review_file: what `firsthand preflight` wrote.
        stage: one of the definition's stages.
        state_path: the private state directory, or None for the usual place.
        out: a second place for the evidence; the first is always the state directory, where the gate reads it.
        key: a private key file.
        observers: told what happens.
        progress: told each probe when the battery has to run.
        host: what the provider may look at; this machine by default.

    Raises:
        ReviewError: nothing was dispatched: no provider, another set-up, no way to authenticate.
        RoundError: the round ended without evidence that counts; the ledger says what is known.
        FirsthandError: nothing could be frozen, run or claimed; see `open_run`, `furnish` and `run_round`.
    """
    diagnosis = parse_diagnosis(_read(review_file), str(review_file))
    where = host or this_host(Path(diagnosis.program.path))
    with open_run(config, state_path, observers) as run:
        document = run.definition.document
        if stage not in document.stages:
            raise UsageError(
                f"the definition has no stage {stage!r}",
                where="--stage",
                next_step=f"choose one of: {', '.join(document.stages)}",
            )
        provider, plugin = find_provider(document)
        verification = document.review_verification
        work = run if verification is None else furnish(run, verification, progress=progress)
        bench = _bench(work)
        refuse_set_up(provider, plugin, where, diagnosis, with_tools=bench is not None)
        auth = choose_leg(provider, where)
        destination = foresee(work, out, key)
        check_source(run.definition, run.snapshot.manifest)
        dispatching = _Dispatching(provider, plugin, where, auth, diagnosis, work, bench, destination)
        budget_s = diagnosis.budget.timeout_ms / 1000
        with Ledger.open(run.state) as ledger:
            request = claim_request(run.definition, run.snapshot.manifest, stage, budget_s=budget_s)
            ended = run_round(run.state, ledger, request, dispatching.perform, stages=document.stages, out=out)
    observers.evidence_sealed(str(ended.path), ended.sha256)
    observers.round_ended(document.run_id, stage, ended.number, ended.state, ended.code)
    sealed = Sealed(ended.evidence, ended.path, ended.sha256)
    return Reviewing(ended, sealed, dispatching.failure, dispatching.changed_tests)


class _Announcing:
    """Enters that the dispatch begins before the first process: from there on something may have reached the reviewer.

    A provider that refuses before that, for want of a login say, leaves a round that failed, and none that is unknown.
    """

    def __init__(self, launcher: PlainLauncher, opened: OpenRound) -> None:
        self.level = launcher.level
        self._launcher = launcher
        self._opened = opened

    def start(self, launch: Launch) -> AbstractContextManager[Process]:
        """See `Launcher`."""
        self._opened.dispatched()
        return self._launcher.start(launch)

    def credential(self, path: Path) -> Path:
        """See `Launcher`."""
        return self._launcher.credential(path)


class _Dispatching:
    """What performs the dispatch of one claimed round."""

    def __init__(
        self,
        provider: Provider,
        plugin: PluginIdentity,
        host: Host,
        auth: AuthLeg | None,
        diagnosis: Diagnosis,
        work: Run,
        bench: Bench | None,
        destination: Destination,
    ) -> None:
        self.failure: Failure | None = None
        self.changed_tests: tuple[str, ...] = ()
        self._provider = provider
        self._plugin = plugin
        self._host = host
        self._auth = auth
        self._diagnosis = diagnosis
        self._work = work
        self._bench = bench
        self._destination = destination

    def perform(self, opened: OpenRound) -> DispatchedEvidence:
        """See `rounds.PerformDispatch`."""
        work = self._work
        self.changed_tests = opened.changed_tests
        work.recording.on_call = lambda call: opened.head("call", call.canonical_digest())
        claimed = Round(
            document=work.definition.document,
            snapshot=work.snapshot,
            stage=opened.stage,
            number=opened.number,
            nonce=opened.nonce,
            diagnosis=self._diagnosis,
            plugin=self._plugin,
            host=self._host,
            auth=self._auth,
            private=work.session.tree("reviewer"),
            door=work.session.tree("door"),
        )

        def launcher(private: Path, deadline: float) -> Launcher:
            return _Announcing(PlainLauncher(work.session, private, deadline), opened)

        reviewed = review_round(self._provider, claimed, self._bench, launcher, work.recording)
        # A provider that came back without ever starting anything has a record all the same.
        opened.dispatched()
        self.failure = reviewed.failure
        if isinstance(work, Prepared) and reviewed.spoiled is not None:
            keep_if_unknown(work, reviewed.spoiled)
        if reviewed.dispatch.transcript is not None:
            opened.head("transcript", reviewed.dispatch.transcript.sha256)
        if reviewed.dispatch.judgement is not None:
            opened.head("answer", reviewed.dispatch.judgement.canonical_digest())
        review = Review(
            stage=opened.stage,
            round_number=opened.number,
            nonce=opened.nonce,
            # The reviewer's own process is started plainly: nothing confines it, and nothing here claims otherwise.
            isolation=Isolation(
                level="app-layer", reason="no-backend", auth=self._auth.auth if self._auth is not None else None
            ),
            dispatch=reviewed.dispatch,
        )
        _, raw = seal_bytes(work, "review", self._destination.key, review)
        return DispatchedEvidence(raw, reviewed.dispatch.usage)


def _bench(work: Run) -> Bench | None:
    if not isinstance(work, Prepared):
        return None
    paths = frozenset(work.verification.mutation_paths)
    return Bench(work.ground, Registered(checks=work.checks, mutation_paths=paths, snapshot=work.snapshot))


def _read(path: Path) -> bytes:
    try:
        content = read_path(path, _LIMIT_DIAGNOSIS_BYTES)
    except FileRefusedError as error:
        raise ReviewError(
            error.message, where=str(path), next_step=error.next_step, code="tool_preflight_missing"
        ) from error
    if content is None:
        raise ReviewError(
            "there is no diagnosis",
            where=str(path),
            next_step="firsthand preflight --config FILE --model MODEL > review.json",
            code="tool_preflight_missing",
        )
    return content.data
