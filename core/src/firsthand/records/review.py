"""A reviewer's dispatch: what it asked for, what it was given, what it judged."""

from __future__ import annotations

from typing import Literal, TypeAlias

from firsthand.records.base import Count, Digest, Record

ToolName: TypeAlias = Literal["read_file", "run_check", "mutate_check"]
ToolResult: TypeAlias = Literal["ok", "error", "refused", "cancelled"]


class ToolCall(Record):
    """One call of the reviewer to the host's tool server, in order of arrival, refused ones included."""

    call: Count
    """From 1; the host's own count."""
    tool: str
    """As asked for: a refused call may name a tool that does not exist."""
    arguments_sha256: Digest
    """Digest of the canonical JSON of the arguments."""
    arguments: str
    """The canonical JSON of the arguments, cut at 2,000 characters."""
    result: ToolResult
    code: str
    """Error code for anything but `ok`, else empty."""
    result_sha256: Digest
    """Digest of the text that was returned."""
    result_bytes: Count
    runs: tuple[Count, ...]
    """Numbers of the check runs that the call caused."""
    mutation: Count | None
    """Index into the evidence's mutations."""
    duration_ms: Count


class Coverage(Record):
    """How much of one registered file was delivered to the reviewer."""

    path: str
    total_bytes: Count
    delivered_bytes: Count
    """Distinct bytes, however often they were asked for."""
    whole: bool


class Finding(Record):
    """One finding of the reviewer: text of a model, never evidence."""

    severity: Literal["critical", "high", "medium", "low", "info"]
    path: str
    line: Count | None
    message: str


class Judgement(Record):
    """The reviewer's answer: text of a model, never evidence."""

    verdict: Literal["approved", "rejected", "blocked"]
    summary: str
    findings: tuple[Finding, ...]


class Budget(Record):
    """What a dispatch may spend; never extended."""

    timeout_ms: Count
    max_turns: Count


class Usage(Record):
    """What the provider reported as spent, as reported."""

    input_tokens: Count
    output_tokens: Count
    cache_read_tokens: Count
    cache_creation_tokens: Count
    cost_usd: str
    """Decimal text, as reported; empty when the provider reports none."""


class Transcript(Record):
    """The reviewer's own log, kept beside the evidence."""

    bytes: Count
    sha256: Digest


class ProviderIdentity(Record):
    """The reviewer plug-in and the program and model that it drove."""

    name: str
    distribution: str
    version: str
    cli_path: str
    cli_version: str
    cli_sha256: Digest
    model: str
    effort: str
    session_id: str


class Dispatch(Record):
    """Everything about one reviewer's dispatch that is not a run of a check."""

    provider: ProviderIdentity
    request_digest: Digest
    diagnosis_digest: Digest
    """Digest of the preflight's diagnosis that this dispatch was bound to."""
    budget: Budget
    usage: Usage | None
    transcript: Transcript | None
    server_instances: Count
    """How many relays connected; anything but 1 voids the evidence."""
    tool_calls: tuple[ToolCall, ...]
    coverage: tuple[Coverage, ...]
    unread: tuple[str, ...]
    """Registered paths whose bytes were not delivered whole."""
    judgement: Judgement | None
