"""The provider itself: the contract's calls, and what they have in common."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from firsthand.review.interface import (
    Capability,
    Diagnosis,
    Dispatch,
    Endpoint,
    Host,
    Incapable,
    Launcher,
    PreflightRequest,
    ProgramIdentity,
    ReviewError,
    ReviewRecord,
    ToolUse,
)
from firsthand_claude.asking import ask_version
from firsthand_claude.authentication import Clock, legs
from firsthand_claude.dispatching import Settings, dispatch_round
from firsthand_claude.managed import managed_folders, managed_refusal
from firsthand_claude.preflight import diagnose
from firsthand_claude.program import Programs
from firsthand_claude.scripted import MODEL_PREFIX, ScriptedEndpoint, read_scenario
from firsthand_claude.session import START_LIMIT_S
from firsthand_claude.transcript import tool_uses

RETRIES = 5
"""How often the CLI repeats a model request that failed, with growing pauses: about 20 s in all."""


class ClaudeProvider:
    """Drives the Claude Code CLI. Holds nothing but the identities of programs that it has digested.

    Args:
        retries: of a model request that failed; bound by the diagnosis.
        start_limit_s: until the CLI must have said what it set up.
        managed: folders of managed settings; by default the vendor's for this platform.
        clock: seconds since the epoch.
    """

    name = "claude"
    scripted_model = f"{MODEL_PREFIX}claude"

    def __init__(
        self,
        *,
        retries: int = RETRIES,
        start_limit_s: float = START_LIMIT_S,
        managed: tuple[Path, ...] | None = None,
        clock: Clock = time.time,
    ) -> None:
        folders = managed_folders() if managed is None else managed
        self._settings = Settings(retries, start_limit_s, folders, clock)
        self._programs = Programs()

    def capability(self, host: Host) -> Capability | Incapable:
        """See `Provider.capability`."""
        program = self._program(host)
        if isinstance(program, Incapable):
            return program
        auth = legs(host, self._settings.clock)
        if isinstance(auth, Incapable):
            return auth
        return Capability(program, verification=True, auth=auth)

    def preflight(self, request: PreflightRequest, launcher: Launcher) -> Diagnosis:
        """See `Provider.preflight`."""
        return diagnose(request, launcher, self._needed(request.host), self._settings)

    def review(self, dispatch: Dispatch, endpoint: Endpoint | None, launcher: Launcher) -> ReviewRecord:
        """See `Provider.review`."""
        return dispatch_round(dispatch, endpoint, launcher, self._needed(dispatch.host), self._settings)

    @contextmanager
    def play(self, scenario: Path) -> Iterator[Mapping[str, str]]:
        """See `review.interface.Scripted`."""
        with ScriptedEndpoint(read_scenario(scenario)) as model:
            yield {"ANTHROPIC_BASE_URL": model.url}

    def tool_uses(self, records: Iterable[bytes]) -> tuple[ToolUse, ...]:
        """See `Provider.tool_uses`."""
        return tool_uses(records)

    def _program(self, host: Host) -> ProgramIdentity | Incapable:
        return managed_refusal(self._settings.managed) or self._programs.identity(host, ask_version)

    def _needed(self, host: Host) -> ProgramIdentity:
        program = self._program(host)
        if isinstance(program, Incapable):
            raise ReviewError(program.reason, next_step=program.next_step, code=program.code)
        return program
