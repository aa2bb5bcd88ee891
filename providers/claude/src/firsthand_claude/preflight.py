"""The preflight: the real CLI, a synthetic request, a loopback endpoint, and a look at what the model is shown.

Isolated configuration and a dummy key always: a login would be sent to whatever address the CLI is given.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from firsthand.files import FileWriteError, make_private_folder
from firsthand.review.interface import Diagnosis, Launch, Launcher, PreflightRequest, ProgramIdentity, ReviewError
from firsthand_claude.asking import asking
from firsthand_claude.authentication import DUMMY_KEY
from firsthand_claude.dispatching import Settings
from firsthand_claude.events import Expected
from firsthand_claude.flags import (
    ANSWER_TOOL,
    Asked,
    command_line,
    compact,
    environment,
    flag_set_digest,
    needed_flags,
)
from firsthand_claude.judging import judge
from firsthand_claude.places import make_places
from firsthand_claude.program import INSTALL, SilentError, lacking_flags
from firsthand_claude.sampling import sample
from firsthand_claude.scripted import Call, Scenario, ScriptedEndpoint, Turn
from firsthand_claude.session import run_session
from firsthand_claude.wire import check_wire

SYNTHETIC_PROMPT: Final = "This is a synthetic request of a preflight. There is nothing to review."
LIMIT_S: Final = 120.0


def diagnose(request: PreflightRequest, launcher: Launcher, program: ProgramIdentity, settings: Settings) -> Diagnosis:
    """Prove what a review with this set-up shows to a model; see `Provider.preflight`.

    Raises:
        ReviewError: a flag is lacking, or something else than expected was shown or sent.
    """
    asked = Asked(
        model=request.model,
        effort=request.effort,
        system_prompt=request.system_prompt,
        output_schema=compact(request.output_schema),
        tools=() if request.endpoint is None else tuple(tool.name for tool in request.endpoint.tools),
        max_turns=request.budget.max_turns,
    )
    try:
        places = make_places(request.private, request.endpoint)
        make_private_folder(request.private / "help")
    except (OSError, FileWriteError) as error:
        raise ReviewError(
            f"the preflight's private files can't be made: {error}",
            where=str(request.private),
            next_step="free some space for the state directory, and keep other programs out of it",
        ) from error
    _check_flags(request, launcher, program, asked)
    scenario = Scenario("preflight", (Turn(calls=(Call(ANSWER_TOOL, sample(request.output_schema)),), times=0),))
    with ScriptedEndpoint(scenario, serves=lambda _: True) as model:
        auth = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": DUMMY_KEY}
        launch = Launch(
            argv=command_line(program.path, str(places.mcp_config), asked),
            environment=environment(places, retries=settings.retries, tool_timeout_ms=int(LIMIT_S * 1000), auth=auth),
            cwd=places.work,
            stdin=SYNTHETIC_PROMPT.encode(),
            timeout_s=LIMIT_S,
        )
        run = run_session(launcher, launch, Expected(asked.tools, program.version), settings.start_limit_s)
        exchanges = list(model.exchanges)
    failure = judge(run.stream, run.ended)
    if failure is not None:
        raise ReviewError(
            f"the preflight failed: {failure.kind}: {failure.detail}",
            where=program.path,
            next_step="repair what it names, and run the preflight again",
            code="tool_preflight_missing",
        )
    tools, schemas = check_wire(exchanges, request, SYNTHETIC_PROMPT)
    return Diagnosis(
        schema_version=1,
        kind=request.kind,
        provider=request.plugin,
        program=program,
        model=request.model,
        effort=request.effort,
        flag_set_digest=flag_set_digest(asked, retries=settings.retries),
        tool_schemas_digest=schemas,
        tools=tools,
        budget=request.budget,
    )


def _check_flags(request: PreflightRequest, launcher: Launcher, program: ProgramIdentity, asked: Asked) -> None:
    folder = request.private / "help"
    try:
        lacking = lacking_flags(Path(program.path), asking(launcher, folder, folder), needed_flags(asked))
    except SilentError as error:
        raise ReviewError(
            f"the Claude CLI {program.version} at {program.path} gives no help: {error}", next_step=INSTALL
        ) from error
    if lacking:
        raise ReviewError(
            f"the Claude CLI {program.version} at {program.path} lacks {', '.join(lacking)}",
            where=program.path,
            next_step=INSTALL,
        )
