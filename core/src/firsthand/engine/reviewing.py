"""`firsthand preflight` and `firsthand review`: what the reviewer's program shows, and one dispatched round."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firsthand.definition import load_definition
from firsthand.engine.checking import keep_if_unknown
from firsthand.engine.preparation import Prepared, Run, furnish, open_run
from firsthand.engine.providers import choose_leg, find_provider, this_host
from firsthand.engine.sealing import Review, Sealed, foresee, seal_run
from firsthand.errors import UsageError
from firsthand.files import FileRefusedError, read_path
from firsthand.isolation.battery.run import Progress
from firsthand.mutation import Registered
from firsthand.plugins import Observers
from firsthand.records import Budget, Isolation
from firsthand.residues import Session, StateDirectory
from firsthand.review.diagnosis import parse_diagnosis
from firsthand.review.interface import Diagnosis, Failure, Host, ReviewError
from firsthand.review.launching import PlainLauncher
from firsthand.review.preflight import Rehearsal
from firsthand.review.preflight import run_preflight as rehearse
from firsthand.review.session import Bench, Round, review_round

_LIMIT_DIAGNOSIS_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Reviewing:
    """A sealed round, and why it is none where it is none."""

    sealed: Sealed
    failure: Failure | None


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
    """Dispatch one round and seal what came of it; a failure of program, model or network is sealed as such.

    Args:
        config: the definition file.
        review_file: what `firsthand preflight` wrote.
        stage: one of the definition's stages.
        state_path: the private state directory, or None for the usual place.
        out: where the evidence goes; None for the state directory.
        key: a private key file.
        observers: told what happens.
        progress: told each probe when the battery has to run.
        host: what the provider may look at; this machine by default.

    Raises:
        ReviewError: nothing was dispatched: no provider, another set-up, no way to authenticate.
        FirsthandError: nothing could be frozen or run; see `open_run` and `furnish`.
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
        auth = choose_leg(provider, where)
        verification = document.review_verification
        work = run if verification is None else furnish(run, verification, progress=progress)
        destination = foresee(work, out, key)
        reviewed = review_round(
            provider,
            Round(
                document=document,
                snapshot=run.snapshot,
                stage=stage,
                number=1,
                nonce=run.nonce,
                diagnosis=diagnosis,
                plugin=plugin,
                host=where,
                auth=auth,
                private=run.session.tree("reviewer"),
                door=run.session.tree("door"),
            ),
            _bench(work),
            lambda private, deadline: PlainLauncher(run.session, private, deadline),
            run.recording,
        )
        if isinstance(work, Prepared) and reviewed.spoiled is not None:
            keep_if_unknown(work, reviewed.spoiled)
        review = Review(
            stage=stage,
            round_number=1,
            # The reviewer's own process is started plainly: nothing confines it, and nothing here claims otherwise.
            isolation=Isolation(level="app-layer", reason="no-backend", auth=auth.auth if auth is not None else None),
            dispatch=reviewed.dispatch,
        )
        return Reviewing(seal_run(work, "review", destination, review), reviewed.failure)


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
