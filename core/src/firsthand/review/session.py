"""One round of a review: dispatched inside its budget, watched, and taken for a review only by every sign of one.

What the reviewer's program and model say is a claim. The host compares it with its own log of calls, with the
transcript that it reads under guard, and with the schema of the answer; whoever seals the evidence then applies the
rules of acceptance to the records. Whatever is less than a whole success brings no judgement.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from firsthand.checks import Ground
from firsthand.definition import Document
from firsthand.errors import FirsthandError
from firsthand.mutation import Registered
from firsthand.records import Dispatch as DispatchRecord
from firsthand.records import ProviderIdentity, RecordSink
from firsthand.review.answer import output_schema
from firsthand.review.coverage import Delivered
from firsthand.review.diagnosis import check_diagnosis
from firsthand.review.interface import (
    AuthLeg,
    Diagnosis,
    Dispatch,
    Failure,
    Host,
    Incapable,
    Launcher,
    PluginIdentity,
    Provider,
    ReviewError,
    ReviewRecord,
)
from firsthand.review.judging import Seen, judge
from firsthand.review.prompt import SYSTEM_PROMPTS, document_parts, request_digest, request_parts
from firsthand.review.server import Desk, ToolServer
from firsthand.review.tools import tool_schemas
from firsthand.snapshot import Snapshot

BREACH_CODE: Final = "isolation-breach"
UNKNOWN_CODE: Final = "round_unknown"

OpenLauncher: TypeAlias = Callable[[Path, float], Launcher]
"""Makes the launcher of one dispatch, from its private folder and the moment of the monotonic clock that ends it."""

ReviewCode: TypeAlias = Literal["", "round_unknown", "isolation-breach"]


@dataclass(frozen=True, slots=True)
class Bench:
    """What a review with tools stands on."""

    ground: Ground
    registered: Registered


@dataclass(frozen=True, slots=True)
class Round:
    """One claimed round.

    Attributes:
        document: the definition.
        snapshot: what was frozen.
        stage: of the round.
        number: from 1.
        nonce: minted at the claim.
        diagnosis: what the preflight proved.
        plugin: the provider, as its distribution declares it.
        host: what the provider may look at.
        auth: the leg that was chosen, or None.
        private: empty private folder (0700) for all that the reviewer's program writes; removed by the caller.
        door: empty private folder (0700) for the tool server's socket; removed by the caller.
    """

    document: Document
    snapshot: Snapshot
    stage: str
    number: int
    nonce: str
    diagnosis: Diagnosis
    plugin: PluginIdentity
    host: Host
    auth: AuthLeg | None
    private: Path
    door: Path


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What came of a round.

    Attributes:
        dispatch: the record; its judgement is None unless the dispatch was a review by every sign.
        code: empty for a review; `round_unknown` where there is none; `isolation-breach` where a guard failed, which
            was also entered as voiding.
        failure: why there is no review.
        spoiled: what ended the desk's service, or None; a `CleanupUnknownError` means that the copies must be kept.
    """

    dispatch: DispatchRecord
    code: ReviewCode
    failure: Failure | None
    spoiled: FirsthandError | None


def review_round(
    provider: Provider, round_: Round, bench: Bench | None, open_launcher: OpenLauncher, sink: RecordSink
) -> Reviewed:
    """Dispatch one round and bring back what counts of it.

    Args:
        provider: drives the reviewer.
        round_: what to review.
        bench: where the tools work; None exactly for a definition without checks.
        open_launcher: called once.
        sink: gets every record of the round and, for a broken guard, the code that voids them.

    Raises:
        ReviewError: the diagnosis is not of this set-up, or the provider could dispatch nothing; the round was not
            used. No record was entered.
        BaseException: an interrupt; everything that was started is ended first.
    """
    diagnosis = round_.diagnosis
    refuse_set_up(provider, round_.plugin, round_.host, diagnosis, with_tools=bench is not None)
    deadline = time.monotonic() + diagnosis.budget.timeout_ms / 1000
    if bench is None:
        documents = document_parts(
            round_.document, round_.snapshot.manifest, _contents(round_.snapshot), round_.stage, round_.number
        )
        parts, delivered = documents.parts, documents.delivered
    else:
        parts = request_parts(round_.document, round_.snapshot.manifest, round_.stage, round_.number)
        delivered = Delivered(round_.snapshot.manifest)
    tools = tool_schemas() if bench is not None else ()
    system_prompt = SYSTEM_PROMPTS[diagnosis.kind]
    dispatch = Dispatch(
        diagnosis=diagnosis,
        system_prompt=system_prompt,
        prompt=parts,
        output_schema=output_schema(),
        nonce=round_.nonce,
        auth=round_.auth,
        private=round_.private,
        host=round_.host,
        remaining_s=max(0.0, deadline - time.monotonic()),
    )
    launcher = open_launcher(round_.private, deadline)
    seen = (
        _without_tools(provider, dispatch, launcher, delivered)
        if bench is None
        else _with_tools(provider, dispatch, launcher, bench, round_.door, sink)
    )
    judged = judge(provider, diagnosis, round_.private, seen)
    code: ReviewCode = ""
    if judged.failure is not None:
        code = BREACH_CODE if judged.breach else UNKNOWN_CODE
    if judged.breach:
        sink.voided(BREACH_CODE)
    record = seen.record
    return Reviewed(
        dispatch=DispatchRecord(
            provider=ProviderIdentity(
                name=round_.plugin.name,
                distribution=round_.plugin.distribution,
                version=round_.plugin.version,
                cli_path=diagnosis.program.path,
                cli_version=diagnosis.program.version,
                cli_sha256=diagnosis.program.sha256,
                model=diagnosis.model,
                effort=diagnosis.effort,
                session_id=record.session_id if record is not None else "",
            ),
            request_digest=request_digest(system_prompt, parts, tools, dispatch.output_schema),
            diagnosis_digest=diagnosis.canonical_digest(),
            budget=diagnosis.budget,
            usage=record.usage if record is not None else None,
            transcript=judged.transcript,
            server_instances=seen.instances,
            tool_calls=seen.calls,
            coverage=seen.delivered.records(),
            unread=seen.delivered.unread(),
            judgement=judged.judgement,
        ),
        code=code,
        failure=judged.failure,
        spoiled=seen.spoiled,
    )


def refuse_set_up(
    provider: Provider, plugin: PluginIdentity, host: Host, diagnosis: Diagnosis, *, with_tools: bool
) -> None:
    """Refuse what can be foreseen, before a round is used up.

    Args:
        provider: the reviewer plug-in.
        plugin: as its distribution declares it.
        host: what the provider may look at.
        diagnosis: what the preflight proved.
        with_tools: whether the review works with the host's tools.

    Raises:
        ReviewError: the provider can't review here, or the diagnosis is of another set-up.
    """
    capability = provider.capability(host)
    if isinstance(capability, Incapable):
        raise ReviewError(capability.reason, where=plugin.name, next_step=capability.next_step, code=capability.code)
    if with_tools and not capability.verification:
        raise ReviewError(
            f"the provider {plugin.name} can't review with the host's tools",
            where="reviewRuntime",
            next_step="choose another provider, or a definition without reviewVerification",
        )
    check_diagnosis(
        diagnosis,
        kind="tools" if with_tools else "tool-less",
        plugin=plugin,
        program=capability.program,
        where="review.json",
    )


def _contents(snapshot: Snapshot) -> dict[str, bytes]:
    return {entry.path: snapshot.read(entry.path) for entry in snapshot.manifest.entries if entry.state == "present"}


def _with_tools(
    provider: Provider, dispatch: Dispatch, launcher: Launcher, bench: Bench, door: Path, sink: RecordSink
) -> Seen:
    with ExitStack() as stack:
        desk = stack.enter_context(Desk(bench.ground, bench.registered, sink))
        server = stack.enter_context(ToolServer(door, desk))
        record, failure = _dispatch(provider, dispatch, server, launcher)
        # The server's end first: only then is the log complete and no command left.
        server.stop()
        return Seen(
            record=record,
            failure=failure,
            calls=server.calls,
            arrived=server.arrived,
            instances=server.instances,
            delivered=desk.delivered,
            spoiled=desk.spoiled,
        )


def _without_tools(provider: Provider, dispatch: Dispatch, launcher: Launcher, delivered: Delivered) -> Seen:
    record, failure = _dispatch(provider, dispatch, None, launcher)
    return Seen(record=record, failure=failure, calls=(), arrived=0, instances=0, delivered=delivered, spoiled=None)


def _dispatch(
    provider: Provider, dispatch: Dispatch, server: ToolServer | None, launcher: Launcher
) -> tuple[ReviewRecord | None, Failure | None]:
    """Let the provider work. A fault of it is a failure like any other, unless nothing was dispatched."""
    try:
        record = provider.review(dispatch, server.endpoint if server is not None else None, launcher)
    except ReviewError:
        if server is None or not server.instances:
            raise
        return None, Failure("died", "the provider gave up after its program had begun")
    except Exception as error:  # noqa: BLE001 - foreign code; whatever it raises, the round has ended without a review
        return None, Failure("died", f"the provider failed: {type(error).__name__}: {error}")
    return record, record.failure
