"""The contract between the core and a reviewer's provider.

A provider drives one reviewer program. It decides nothing: it says what it could do, proves what its program shows to
a model, and brings back what it saw. The core judges that, compares it with what the host itself logged, and writes
the evidence; a provider sees neither evidence nor ledger. It starts processes only through the launcher that it is
given, so the same provider serves a plain and a confined reviewer. A provider registers a class under the entry point
group `firsthand.providers`; the class is called without arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias, runtime_checkable

from firsthand.canonical import JSONValue
from firsthand.errors import FirsthandError
from firsthand.records import Budget, Digest, Record, Usage
from firsthand.review.processes import Exit, Launch, Launcher, Process

__all__ = [
    "BREACHES",
    "DEFAULT_TIMEOUT_MS",
    "DIAGNOSIS_VERSION",
    "SERVER_NAME",
    "AuthLeg",
    "Capability",
    "Diagnosis",
    "Dispatch",
    "Endpoint",
    "Exit",
    "Failure",
    "FailureKind",
    "Host",
    "Incapable",
    "Launch",
    "Launcher",
    "PluginIdentity",
    "PreflightRequest",
    "Process",
    "ProgramIdentity",
    "Provider",
    "ReviewError",
    "ReviewKind",
    "ReviewRecord",
    "ToolSchema",
    "ToolUse",
]

SERVER_NAME: Final = "cm_review"
"""Name of the tool server, as the reviewer's program is told it."""
DEFAULT_TIMEOUT_MS: Final = 1_800_000
"""A review's budget of time where nothing else is said. Source: the contract, Providers, preflight, review."""
DIAGNOSIS_VERSION: Final = 1

ReviewKind: TypeAlias = Literal["tools", "tool-less"]
"""`tools`: with the three tools of the host. `tool-less`: everything stands in the prompt."""

FailureKind: TypeAlias = Literal[
    "could-not-start",
    "died",
    "timed-out",
    "output-limit",
    "transcript-limit",
    "unauthenticated",
    "rate-limited",
    "overloaded",
    "model-error",
    "stream-broken",
    "no-result",
    "no-answer",
    "tools-missing",
    "tools-extra",
    "permission-denied",
    "setup-differs",
]
"""Why a dispatch brought no review.

`died`: the program ended with a status other than 0, or by a signal, without a better reason. `stream-broken`: what it
printed is not what it should print (garbage, half events, a dropped stream). `no-result`: not exactly one final result.
`no-answer`: a final result without the structured answer. `tools-missing`, `tools-extra`: the model was not shown
exactly the expected tools. `permission-denied`: the model asked for something that its program refused.
`setup-differs`: program, version or digest are not those of the diagnosis.
"""

BREACHES: Final[frozenset[FailureKind]] = frozenset(
    {"transcript-limit", "tools-extra", "permission-denied", "setup-differs"}
)
"""Failures that show a guard of the reviewer broken; all others say only that there is no review."""


class ReviewError(FirsthandError):
    """A review, or its preflight, can't be had from this provider on this machine as it is set up."""

    default_code = "review_verification_provider"


@dataclass(frozen=True, slots=True)
class Host:
    """What a provider may look at on this machine.

    Attributes:
        environment: the host's own, to find a program and the legs of authentication. Nothing of it may reach a process
            but what the provider names one by one.
        home: the user's home, or None where there is none.
        program: the reviewer program's path as the user gave it, or None: the provider looks for it itself.
    """

    environment: Mapping[str, str]
    home: Path | None
    program: Path | None = None


@dataclass(frozen=True, slots=True)
class AuthLeg:
    """One way to authenticate that this machine offers; holds no secret.

    Attributes:
        auth: `provider-env` for a key from the environment, `oauth-copy` for a copy of the host's login.
        usable: whether it could be used for a review within the default budget.
        detail: where it comes from and why it can't be used, in plain words.
        address: `host:port` that a reviewer with this leg talks to, and nothing else.
    """

    auth: Literal["provider-env", "oauth-copy"]
    usable: bool
    detail: str
    address: str


class ProgramIdentity(Record):
    """The reviewer program that a provider drives."""

    path: str
    version: str
    sha256: Digest


@dataclass(frozen=True, slots=True)
class Capability:
    """What a provider could do on this machine, as far as it can tell without a model.

    Attributes:
        program: the reviewer program.
        verification: whether it can review with the host's tools; if not, only tool-less reviews.
        auth: the legs of authentication, the preferred first; empty when there are none.
    """

    program: ProgramIdentity
    verification: bool
    auth: tuple[AuthLeg, ...]


@dataclass(frozen=True, slots=True)
class Incapable:
    """The provider can't review on this machine.

    Attributes:
        reason: one sentence.
        next_step: what to do about it.
        code: `review_verification_provider`, or `provider-config-unreadable` for a configuration that is present but
            can't be read or recognised.
    """

    reason: str
    next_step: str
    code: Literal["review_verification_provider", "provider-config-unreadable"] = "review_verification_provider"


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """One tool as the host's server declares it, and so as the model must be shown it."""

    name: str
    description: str
    input_schema: Mapping[str, JSONValue]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How a reviewer's program reaches the host's tool server: by a relay that it starts and speaks MCP to on stdio.

    Attributes:
        argv: the relay's command line; holds no secret.
        environment: the relay's whole environment; holds no secret. Anything more does no harm.
        reads: folders and files that the relay must be able to see, for a launcher that confines.
        tools: what the server declares, in its order.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    reads: tuple[Path, ...]
    tools: tuple[ToolSchema, ...]


class PluginIdentity(Record):
    """The provider plug-in, as its distribution declares it."""

    name: str
    distribution: str
    version: str


class Diagnosis(Record):
    """What a preflight proved; the whole content of `review.json`. A dispatch is bound to its digest."""

    schema_version: Literal[1]
    kind: ReviewKind
    provider: PluginIdentity
    program: ProgramIdentity
    model: str
    effort: str
    """As given; empty for the program's own choice."""
    flag_set_digest: Digest
    """Canonical digest of the command line and the environment's names and fixed values, with the places of files and
    all that differs from dispatch to dispatch (budget, session, auth) left out: one for every kind of auth."""
    tool_schemas_digest: Digest
    """`schemas_digest` of the host's tools and the output schema, as they were seen on the wire."""
    tools: tuple[str, ...]
    """Every tool name seen on the wire, the program's own names, sorted."""
    budget: Budget


@dataclass(frozen=True, slots=True)
class PreflightRequest:
    """What a preflight is to prove.

    Attributes:
        plugin: goes into the diagnosis.
        kind: which kind of review.
        model: as the user gave it.
        effort: as the user gave it; empty for the program's own choice.
        budget: goes into the diagnosis. The preflight itself is bounded by the launcher.
        system_prompt: the constant that reviews will have.
        output_schema: JSON Schema of the answer that reviews will ask for.
        endpoint: a tool server that declares the tools and refuses every call; None for a tool-less review.
        private: an empty 0700 folder of the host, for all files of this preflight; removed by the host.
        host: where to find the program. The preflight uses no login and no key of it.
    """

    plugin: PluginIdentity
    kind: ReviewKind
    model: str
    effort: str
    budget: Budget
    system_prompt: str
    output_schema: Mapping[str, JSONValue]
    endpoint: Endpoint | None
    private: Path
    host: Host


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One round for one reviewer.

    Attributes:
        diagnosis: what the preflight proved; program, model, effort, kind and budget are taken from it.
        system_prompt: a constant; nothing of the project stands in it.
        prompt: the parts of the user's message, in order; joined by an empty line where a program takes one text.
        output_schema: JSON Schema of the answer. The core checks the answer again itself.
        nonce: random, of this round.
        auth: the leg that the host chose, or None to use a loopback endpoint that needs none.
        private: an empty 0700 folder of the host: home, configuration, working directory and transcript go in here,
            and nothing is written anywhere else. Removed by the host. All files in it together are limited.
        host: where the program and the leg's secret are found.
        remaining_s: what is left of the budget at this moment; the launcher ends everything when it is spent.
    """

    diagnosis: Diagnosis
    system_prompt: str
    prompt: tuple[str, ...]
    output_schema: Mapping[str, JSONValue]
    nonce: str
    auth: AuthLeg | None
    private: Path
    host: Host
    remaining_s: float


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One tool use that stands in the reviewer's transcript.

    Attributes:
        tool: for the host's tools its plain name (`read_file`), whatever prefix the program gives it. Any other use is
            named as it stands; only the use by which the program takes the structured answer is left out.
        arguments: as they stand.
    """

    tool: str
    arguments: object


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no review."""

    kind: FailureKind
    detail: str


@dataclass(frozen=True, slots=True)
class ReviewRecord:
    """Everything that a provider saw of one dispatch. None of it is evidence before the core has compared it.

    Attributes:
        program: what it drove, digested before it was started.
        session_id: the program's own name of the session; empty when it gave none.
        usage: as reported; None when nothing was reported.
        transcripts: the program's own log, as files inside the private folder; the host reads them.
        result: the final result as it was received, one line; empty when there was none.
        structured_output: the answer's value, as received; None when there is none. Never parsed from prose.
        exit: how the process ended.
        failure: why there is no review; None exactly when the provider saw a success by its program's every sign.
    """

    program: ProgramIdentity
    session_id: str
    usage: Usage | None
    transcripts: tuple[Path, ...]
    result: bytes
    structured_output: object
    exit: Exit
    failure: Failure | None


@runtime_checkable
class Provider(Protocol):
    """A reviewer plug-in. Construction is free of side effects and cheap."""

    name: str

    def capability(self, host: Host) -> Capability | Incapable:
        """What could be done here. May start the program through nothing but its version query; contacts nobody.

        Never raises for what it finds.
        """

    def preflight(self, request: PreflightRequest, launcher: Launcher) -> Diagnosis:
        """Run the real program against a loopback endpoint with a synthetic request, and say what the model was shown.

        Raises:
            ReviewError: the program is missing, too old, lacks a flag (`review_verification_provider`), or the wire did
                not show exactly the expected tools (`tool_preflight_missing`).
        """

    def review(self, dispatch: Dispatch, endpoint: Endpoint | None, launcher: Launcher) -> ReviewRecord:
        """Dispatch one round and bring back what was seen. The host's budget ends it, at the latest.

        Args:
            dispatch: what to ask.
            endpoint: the tool server; None exactly for a tool-less review.
            launcher: the only source of processes.

        Returns:
            also for every failure of program, model or network: that is a `failure` of the record.

        Raises:
            ReviewError: nothing was dispatched: the set-up does not allow it.
        """

    def tool_uses(self, records: Iterable[bytes]) -> tuple[ToolUse, ...]:
        """Every tool use in a transcript that the host read under its guards.

        Args:
            records: the transcript's lines in order, without line ends.

        Raises:
            ValueError: a record is not what this program writes; the core takes that for a broken guard.
        """


@runtime_checkable
class Scripted(Protocol):
    """What a provider may offer besides: a model that plays a script, to see a whole review without an account.

    Attributes:
        scripted_model: a model name that only the scripted model serves, so that the evidence can't be taken for a
            real model's.
    """

    scripted_model: str

    def play(self, scenario: Path) -> AbstractContextManager[Mapping[str, str]]:
        """Serve a scenario file on loopback while the context is open.

        Gives the variables that a `Host` must show for the provider to use it.

        Raises:
            FirsthandError: the scenario can't be read.
        """
