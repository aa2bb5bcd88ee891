"""What observers are told, and when."""

from __future__ import annotations

from typing import Final

import pluggy

from firsthand.records import CheckRun, MutationRun, RunPurpose, ToolCall

PROJECT: Final = "firsthand"

hookimpl: Final = pluggy.HookimplMarker(PROJECT)
"""Marks a method of an observer as the implementation of the hook that it is named after."""

_hookspec: Final = pluggy.HookspecMarker(PROJECT)


class ObserverHooks:
    """The hooks, each with the moment it fires.

    Observers watch and never decide. They return nothing; they get frozen records; they run in the host's process, one
    call at a time, in the thread that does the work, so a slow observer slows the work. An observer implements any of
    these with the same name and any subset of the arguments, by name.
    """

    @_hookspec
    def check_started(self, check_id: str, purpose: RunPurpose, lane: int) -> None:
        """Fires before `firsthand check` starts a registered check's command.

        Runs of a mutation series and of a review are told when they end (`check_finished`), not when they start.

        Args:
            check_id: as registered.
            purpose: what the working copy holds.
            lane: number of the working copy, from 0.
        """

    @_hookspec
    def check_finished(self, run: CheckRun) -> None:
        """Fires when a run has ended and its status is decided; after it entered the evidence."""

    @_hookspec
    def mutation_finished(self, run: MutationRun) -> None:
        """Fires when a mutation has its verdict, those that were not applied included."""

    @_hookspec
    def tool_called(self, call: ToolCall) -> None:
        """Fires when a reviewer's call was answered, a refused or cancelled one too; after it entered the log."""

    @_hookspec
    def evidence_sealed(self, path: str, sha256: str) -> None:
        """Fires once for each evidence file, when its bytes are on disk.

        Args:
            path: absolute path of the file.
            sha256: digest of exactly the stored bytes.
        """

    @_hookspec
    def round_ended(self, run_id: str, stage: str, round_number: int, status: str, code: str) -> None:
        """Fires when a reviewer's round is closed in the ledger, after its evidence was sealed.

        Args:
            run_id: of the definition.
            stage: `root-cause` or `final`.
            round_number: from 1.
            status: `passed`, `failed`, `refused` or `unknown`.
            code: the code behind a status other than passed, else empty.
        """
