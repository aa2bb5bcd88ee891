"""The shape of the definition on the wire: camelCase, nothing unknown, no value turned into another type."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from firsthand.definition.paths import LONGEST_PATH_BYTES, PATH_PATTERN
from firsthand.records import RunnerName

FILES_LIMIT: Final = 256
FILE_LIMIT_BYTES: Final = 2 * 1024 * 1024
TOTAL_LIMIT_BYTES: Final = 16 * 1024 * 1024
CHECKS_LIMIT: Final = 8
TIMEOUT_LIMIT_MS: Final = 300_000
TOOLCHAINS_LIMIT: Final = 32

Stage: TypeAlias = Literal["root-cause", "final"]


def _refuse_repeats(values: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(values)) != len(values):
        raise PydanticCustomError("repeated", "a value stands twice")
    return values


RelativePath = Annotated[
    str,
    Field(min_length=1, json_schema_extra={"pattern": PATH_PATTERN, "maxLength": LONGEST_PATH_BYTES}),
]
Label = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$")]
Argument = Annotated[str, Field(min_length=1, json_schema_extra={"pattern": r"^[^\u0000]+$"})]


class Shape(BaseModel):
    """A part of the definition: frozen, and only as it is spelled on the wire."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=False,
        serialize_by_alias=True,
        use_attribute_docstrings=True,
    )


class Check(Shape):
    """A registered command: a fixed argv, run without a shell, green when it exits 0 on the unmodified files."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
    """Unique name of the check."""
    command: Annotated[tuple[Argument, ...], Field(min_length=1)]
    """The argument vector; each entry non-empty and without NUL. Never a shell string."""
    runner: RunnerName | None = None
    """How its tests are counted, where the command does not show it; `exit` knowingly takes plain exit codes."""


class PackageDocuments(Shape):
    """The documents that the reviewer judges the work by."""

    requirements: Annotated[tuple[RelativePath, ...], Field(max_length=FILES_LIMIT)] = ()
    """What was asked for: relative paths."""
    instructions: Annotated[tuple[RelativePath, ...], Field(max_length=FILES_LIMIT)] = ()
    """How the project works: relative paths."""


class ReviewVerification(Shape):
    """What is frozen, run and mutated. Everything registered goes to the reviewer."""

    files: Annotated[tuple[RelativePath, ...], Field(min_length=1, max_length=FILES_LIMIT)]
    """Relative POSIX paths below the root, at most 2 MiB each and 16 MiB in all: all that the checks need, and the
    package's documents. A path where nothing stands yet is recorded as missing."""
    checks: Annotated[tuple[Check, ...], Field(min_length=1, max_length=CHECKS_LIMIT)]
    """The registered commands."""
    mutation_paths: Annotated[tuple[RelativePath, ...], Field(max_length=FILES_LIMIT)] = ()
    """Implementation files out of `files` that may be broken on purpose: no documents, tests or configuration."""
    timeout_ms: Annotated[int, Field(ge=1, le=TIMEOUT_LIMIT_MS)] = 60_000
    """Time limit of each command, in milliseconds."""
    toolchains: Annotated[
        tuple[Annotated[str, Field(min_length=1, json_schema_extra={"pattern": "^/"})], ...],
        Field(max_length=TOOLCHAINS_LIMIT),
    ] = ()
    """Absolute folders that commands may read and execute beyond the system's own runtime; a dependency folder inside
    the source (.venv, node_modules, vendor) may be named too."""


class Document(Shape):
    """One run under verification, fixed by the digest of this document."""

    run_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
    """Name of the run, bound to the first definition seen under it."""
    root: Annotated[str, Field(min_length=1)] = "."
    """The project's folder, from the definition's own folder."""
    runtime: Label
    """Honest label of the host that did the work."""
    review_runtime: Label | None = None
    """Provider that reviews the work."""
    stages: Annotated[tuple[Stage, ...], Field(min_length=1, max_length=2), AfterValidator(_refuse_repeats)] = (
        "root-cause",
        "final",
    )
    """Stages that are reviewed."""
    max_rounds: Annotated[int, Field(ge=1, le=100)] = 5
    """How many rounds each stage may take."""
    package: PackageDocuments = PackageDocuments()
    """What a review is about; each document must be among the registered files where there are any."""
    review_verification: ReviewVerification | None = None
    """Registered files, checks and mutations. Without it a review is tool-less."""
