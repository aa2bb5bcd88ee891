"""One round: the checked set-up, the private folders, the CLI, and what was seen of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from firsthand.files import FileWriteError
from firsthand.review.interface import (
    Dispatch,
    Endpoint,
    Launch,
    Launcher,
    ProgramIdentity,
    ReviewError,
    ReviewRecord,
)
from firsthand_claude.authentication import CREDENTIALS, Clock, login_for, variables
from firsthand_claude.events import Expected
from firsthand_claude.flags import Asked, Places, command_line, compact, environment, flag_set_digest
from firsthand_claude.judging import judge, usage_of
from firsthand_claude.places import make_places, write_private
from firsthand_claude.session import run_session

_JOINT = "\n\n"


@dataclass(frozen=True, slots=True)
class Settings:
    """What is the same in every run of one provider.

    Attributes:
        retries: how often the CLI repeats a model request that failed.
        start_limit_s: until the CLI must have said what it set up.
        managed: folders of managed settings; anything in them is a refusal.
        clock: seconds since the epoch, for the expiry of a login.
    """

    retries: int
    start_limit_s: float
    managed: tuple[Path, ...]
    clock: Clock


def asked_for(dispatch: Dispatch, endpoint: Endpoint | None) -> Asked:
    """What the command line needs of a dispatch."""
    return Asked(
        model=dispatch.diagnosis.model,
        effort=dispatch.diagnosis.effort,
        system_prompt=dispatch.system_prompt,
        output_schema=compact(dispatch.output_schema),
        tools=() if endpoint is None else tuple(tool.name for tool in endpoint.tools),
        max_turns=dispatch.diagnosis.budget.max_turns,
    )


def check_bound(dispatch: Dispatch, endpoint: Endpoint | None, program: ProgramIdentity, settings: Settings) -> None:
    """Refuse a dispatch whose set-up is not the diagnosed one, before anything is spent.

    Raises:
        ReviewError: `tool_preflight_missing`.
    """
    diagnosis = dispatch.diagnosis
    if (diagnosis.kind == "tools") != (endpoint is not None):
        raise _differs(f"it is one of a {diagnosis.kind} review")
    if diagnosis.program != program:
        was, now = diagnosis.program, program
        raise _differs(f"it is one of {was.path} {was.version} ({was.sha256[:12]}), not {now.path} {now.version}")
    if diagnosis.flag_set_digest != flag_set_digest(asked_for(dispatch, endpoint), retries=settings.retries):
        raise _differs("it is one of another command line or environment")


def dispatch_round(
    dispatch: Dispatch, endpoint: Endpoint | None, launcher: Launcher, program: ProgramIdentity, settings: Settings
) -> ReviewRecord:
    """Run the CLI once on this dispatch; see `Provider.review`.

    Raises:
        ReviewError: nothing was dispatched.
    """
    check_bound(dispatch, endpoint, program, settings)
    auth = variables(dispatch.host, dispatch.auth)
    try:
        places = make_places(dispatch.private, endpoint)
        if dispatch.auth is not None and dispatch.auth.auth == "oauth-copy":
            _copy_login(dispatch, launcher, places, settings)
    except (OSError, FileWriteError) as error:
        raise ReviewError(
            f"the reviewer's private files can't be made: {error}",
            where=str(dispatch.private),
            next_step="free some space for the state directory, and keep other programs out of it",
        ) from error
    asked = asked_for(dispatch, endpoint)
    launch = Launch(
        argv=command_line(program.path, str(places.mcp_config), asked),
        environment=environment(
            places, retries=settings.retries, tool_timeout_ms=_milliseconds(dispatch.remaining_s), auth=auth
        ),
        cwd=places.work,
        stdin=_JOINT.join(dispatch.prompt).encode("utf-8", "surrogateescape"),
        timeout_s=dispatch.remaining_s,
    )
    run = run_session(launcher, launch, Expected(asked.tools, program.version), settings.start_limit_s)
    return ReviewRecord(
        program=program,
        session_id=run.stream.session_id,
        usage=usage_of(run.stream.result),
        transcripts=transcripts_in(places.config),
        result=run.stream.result_line,
        structured_output=run.stream.result.get("structured_output"),
        exit=run.ended,
        failure=judge(run.stream, run.ended),
    )


def transcripts_in(config: Path) -> tuple[Path, ...]:
    """Every transcript that the CLI wrote, sorted. The host reads them under its guards; nothing is opened here."""
    return tuple(sorted((config / "projects").glob("**/*.jsonl")))


def _copy_login(dispatch: Dispatch, launcher: Launcher, places: Places, settings: Settings) -> None:
    login = login_for(dispatch.host, dispatch.remaining_s, settings.clock)
    # Entered first: a kill between the two leaves an entry without a file, never a file without an entry.
    write_private(launcher.credential(places.config / CREDENTIALS), login.copy())


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))


def _differs(how: str) -> ReviewError:
    return ReviewError(
        f"the diagnosis is not of this set-up: {how}",
        next_step="run `firsthand preflight` again",
        code="tool_preflight_missing",
    )
