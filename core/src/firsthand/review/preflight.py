"""The preflight: the real program, shown to the host's tools and to a model that is none, says what it would show."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firsthand.records import Budget
from firsthand.review.answer import output_schema
from firsthand.review.diagnosis import PREFLIGHT_CODE, check_diagnosis
from firsthand.review.interface import (
    Diagnosis,
    Host,
    Incapable,
    PluginIdentity,
    PreflightRequest,
    Provider,
    ReviewError,
    ReviewKind,
)
from firsthand.review.prompt import SYSTEM_PROMPTS
from firsthand.review.server import ToolServer
from firsthand.review.session import OpenLauncher

PREFLIGHT_TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a preflight is about.

    Attributes:
        plugin: the provider, as its distribution declares it.
        kind: which kind of review.
        model: as the user gave it.
        effort: as the user gave it, or empty.
        budget: what reviews may spend.
        host: what the provider may look at.
        private: empty private folder (0700); removed by the caller.
        door: empty private folder (0700) for the tool server's socket; removed by the caller.
    """

    plugin: PluginIdentity
    kind: ReviewKind
    model: str
    effort: str
    budget: Budget
    host: Host
    private: Path
    door: Path


def run_preflight(provider: Provider, rehearsal: Rehearsal, open_launcher: OpenLauncher) -> Diagnosis:
    """Have a provider prove what its program shows to a model; contacts nobody and uses no login.

    Args:
        provider: drives the program.
        rehearsal: what it is about.
        open_launcher: called once.

    Raises:
        ReviewError: the provider can't review here, or what it saw is not what reviews are given.
    """
    plugin, kind = rehearsal.plugin, rehearsal.kind
    capability = provider.capability(rehearsal.host)
    if isinstance(capability, Incapable):
        raise ReviewError(capability.reason, where=plugin.name, next_step=capability.next_step, code=capability.code)
    if kind == "tools" and not capability.verification:
        raise ReviewError(
            f"the provider {plugin.name} can't review with the host's tools",
            where="reviewRuntime",
            next_step="choose another provider, or a definition without reviewVerification",
        )
    launcher = open_launcher(rehearsal.private, time.monotonic() + PREFLIGHT_TIMEOUT_S)
    with ExitStack() as stack:
        server = stack.enter_context(ToolServer(rehearsal.door, None)) if kind == "tools" else None
        diagnosis = provider.preflight(
            PreflightRequest(
                plugin=plugin,
                kind=kind,
                model=rehearsal.model,
                effort=rehearsal.effort,
                budget=rehearsal.budget,
                system_prompt=SYSTEM_PROMPTS[kind],
                output_schema=output_schema(),
                endpoint=server.endpoint if server is not None else None,
                private=rehearsal.private,
                host=rehearsal.host,
            ),
            launcher,
        )
    check_diagnosis(diagnosis, kind=kind, plugin=plugin, program=capability.program, where="preflight")
    asked = (rehearsal.model, rehearsal.effort, rehearsal.budget)
    if (diagnosis.model, diagnosis.effort, diagnosis.budget) != asked:
        raise ReviewError(
            "the provider's diagnosis is not of what was asked for",
            where="preflight",
            next_step="report it to the provider's authors",
            code=PREFLIGHT_CODE,
        )
    return diagnosis
