"""From a definition file to a ground that checks can run on: every step in its order, each undone at the end.

Source: the contract, Run definition, Snapshot and Isolation. Whatever can be refused is refused before anything is
executed: the definition first, then the files, then the programs, then the backend.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from firsthand.checks import Ground, PlacedCheck, Recorder
from firsthand.definition import Definition, ReviewVerification, home_folders, load_definition, refuse_root
from firsthand.engine.backends import select_backend
from firsthand.engine.recording import Recording
from firsthand.errors import FirsthandError, UsageError
from firsthand.isolation.battery.run import Progress
from firsthand.isolation.interface import IsolationError, Limits, Workspace
from firsthand.isolation.selection import Selected
from firsthand.isolation.toolchain import Closure, RootDigests, resolve
from firsthand.ledger import Ledger
from firsthand.plugins import Observers
from firsthand.records import Enclosing, Executable, ToolchainRoot
from firsthand.residues import Session, StateDirectory, sweep
from firsthand.rules import runner_of
from firsthand.snapshot import Snapshot, SourceDriftError, check_source, freeze

TOOLCHAIN_CODE: Final = "review_verification_evidence"


@dataclass(frozen=True)
class Run:
    """A definition's registered files, frozen, and where records about them go; valid inside `open_run`.

    Attributes:
        nonce: random, minted before anything ran.
        started_at: UTC, RFC 3339.
    """

    definition: Definition
    state: StateDirectory
    session: Session
    snapshot: Snapshot
    recording: Recording
    recorder: Recorder
    observers: Observers
    nonce: str
    started_at: str

    def enclosing(self) -> Enclosing | None:
        """The confinement that commands run in, as the evidence records it; None where none run."""
        return None

    def check_again(self) -> None:
        """Compare what the records rest on with what it was; a change voids them."""
        try:
            check_source(self.definition, self.snapshot.manifest)
        except SourceDriftError as drift:
            self.recorder.voided(drift.code)


@dataclass(frozen=True)
class Prepared(Run):
    """A run whose checks can be executed; valid inside `prepare`.

    Attributes:
        closure: the checks' programs and what they need.
        toolchains: each root with its digest, as the evidence records it.
        ground: what lanes are opened with.
        checks: the registered checks with their programs placed, by id.
    """

    verification: ReviewVerification
    closure: Closure
    toolchains: tuple[ToolchainRoot, ...]
    selected: Selected
    ground: Ground
    checks: Mapping[str, PlacedCheck]

    @property
    def executables(self) -> tuple[Executable, ...]:
        """Each program once, in the order of the checks."""
        return tuple(dict.fromkeys(self.closure.programs.values()))

    def enclosing(self) -> Enclosing:
        """See `Run.enclosing`."""
        return Enclosing(
            backend=self.selected.identity,
            battery_digest=self.selected.report.canonical_digest(),
            not_enforced=self.selected.available.not_enforced,
            toolchains=self.toolchains,
            executables=self.executables,
        )

    def check_again(self) -> None:
        """See `Run.check_again`; the toolchains and programs count as well."""
        super().check_again()
        try:
            # The same roots were looked through for what may not be shown at the start; their content has a digest.
            placed = _place(self.definition, self.verification, refuse=lambda _root: None)
            same = _digests(self.closure, self.state) == self.toolchains and placed == self.closure
        except (OSError, FirsthandError):
            same = False
        if not same:
            self.recorder.voided(TOOLCHAIN_CODE)


@contextmanager
def open_run(config: Path, state_path: Path | None, observers: Observers) -> Iterator[Run]:
    """Read a definition, bind its run, freeze its files; undo all but the binding at the end. Executes nothing.

    Args:
        config: the definition file.
        state_path: the private state directory, or None for the usual place.
        observers: told what happens.

    Raises:
        DefinitionError: the definition, a registered file or a toolchain is refused.
        StateError: the state directory can't be used.
        FirsthandError: the run is bound to another definition.
    """
    definition = load_definition(config, state_dir=state_path)
    state = StateDirectory.open(state_path, source=definition.root)
    sweep(state, clean_kept=False)
    with Ledger.open(state) as ledger:
        ledger.bind(definition.document.run_id, definition.fingerprint)
    with Session.open(state) as session:
        recording = Recording(observers)
        yield Run(
            definition=definition,
            state=state,
            session=session,
            snapshot=freeze(definition, session.tree("snapshot")),
            recording=recording,
            recorder=Recorder(recording),
            observers=observers,
            nonce=secrets.token_hex(32),
            started_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        )


@contextmanager
def prepare(
    config: Path, state_path: Path | None, observers: Observers, *, progress: Progress | None = None
) -> Iterator[Prepared]:
    """Make ready to run the checks of a definition, and undo all of it at the end.

    Args:
        config: the definition file.
        state_path: the private state directory, or None for the usual place.
        observers: told what happens.
        progress: told each probe when the battery has to run.

    Raises:
        UsageError: the definition registers no checks.
        IsolationError: no backend can be used.
        ToolchainError: a check's program can't be placed.
        FirsthandError: as `open_run`.
    """
    if os.name == "nt":
        raise IsolationError(
            "checks can't be confined on Windows", where="Windows", next_step="run it on Linux, macOS or in WSL"
        )
    with open_run(config, state_path, observers) as run:
        verification = run.definition.document.review_verification
        if verification is None:
            raise UsageError(
                "this definition registers no checks",
                where=f"{config}: reviewVerification",
                next_step="add reviewVerification (`firsthand init` drafts one)",
            )
        yield furnish(run, verification, progress=progress)


def furnish(run: Run, verification: ReviewVerification, *, progress: Progress | None = None) -> Prepared:
    """Place the checks' programs and select the backend for an open run.

    Raises:
        IsolationError: no backend can be used.
        ToolchainError: a check's program can't be placed.
    """
    definition, homes = run.definition, home_folders(os.environ)
    closure = _place(
        definition,
        verification,
        refuse=lambda root: refuse_root(root, source=definition.root, state_dir=run.state.path, homes=homes),
    )
    toolchains = _digests(closure, run.state)
    selected = select_backend(run.state, run.session, progress=progress)
    return Prepared(
        **{each.name: getattr(run, each.name) for each in fields(Run)},
        verification=verification,
        closure=closure,
        toolchains=toolchains,
        selected=selected,
        ground=_ground(run, closure, selected),
        checks={
            check.id: PlacedCheck(
                id=check.id,
                command=check.command,
                runner=runner_of(check.command, check.runner),
                executable=closure.programs[check.command[0]],
                timeout_ms=verification.timeout_ms,
            )
            for check in verification.checks
        },
    )


def _place(definition: Definition, verification: ReviewVerification, *, refuse: Callable[[Path], None]) -> Closure:
    return resolve(
        [check.command[0] for check in verification.checks],
        source=definition.root,
        registered=verification.files,
        toolchains=[Path(root) for root in verification.toolchains],
        environment=os.environ,
        refuse=refuse,
    )


def _digests(closure: Closure, state: StateDirectory) -> tuple[ToolchainRoot, ...]:
    """Content digests of the roots that the definition names; derived ones stand without."""
    digests = RootDigests(state.cache)
    named = [(root, True) for root in closure.in_source]
    named += [(toolchain.root, toolchain.named) for toolchain in closure.toolchains]
    return tuple(
        ToolchainRoot(path=str(root), named=by_name, digest=digests.digest(root) if by_name else None)
        for root, by_name in named
    )


def _ground(run: Run, closure: Closure, selected: Selected) -> Ground:
    folder = run.session.tree("lanes")
    template = Workspace(
        copy=folder,
        shown_at=run.definition.root,
        private=folder,
        roots=tuple(toolchain.root.resolve() for toolchain in closure.toolchains),
        links=closure.links,
        in_source=closure.in_source,
        path=closure.path,
        token=run.session.token,
    )
    return Ground(
        snapshot=run.snapshot,
        folder=folder,
        backend=selected.backend,
        ends_all=selected.available.ends_all,
        template=template,
        limits=Limits(),
        processes=run.session,
    )
