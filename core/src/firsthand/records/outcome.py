"""What became of one command, as the host measured it."""

from __future__ import annotations

from typing import Literal, Self, TypeAlias

from pydantic import model_validator

from firsthand.records.base import Count, Digest, Record

OutcomeKind: TypeAlias = Literal[
    "exited", "signalled", "timed-out", "output-limit", "could-not-start", "sandbox-failed"
]
"""How a command ended. None of them is a success by itself: `exited` needs its exit code."""

Cleanup: TypeAlias = Literal["complete", "may-linger", "unknown"]
"""Whether every descendant is known to be gone."""

LimitName: TypeAlias = Literal["stdout", "stderr", "copy-size", "copy-entries", "memory"]
"""Which host-side limit ended a command with `output-limit`."""


class Excerpt(Record):
    r"""The beginning and the end of one output stream.

    Undecodable bytes stand as backslash escapes (`\\xff`), so they differ from a real U+FFFD. A character that a cut
    went through is dropped, and the cut shows as `truncated`.
    """

    head: str
    tail: str
    """Empty unless `truncated`."""
    total_bytes: Count
    """What the host read from the stream before it stopped."""
    sha256: Digest
    """Digest of all bytes read, excerpted or not."""
    truncated: bool
    """Whether bytes between head and tail are not shown."""


class Outcome(Record):
    """One command's end."""

    kind: OutcomeKind
    exit_code: Count | None = None
    """Only with `exited`."""
    signal: Count | None = None
    """Only with `signalled`: the number of the signal that ended the command itself."""
    cleanup: Cleanup
    duration_ms: Count
    """From the release of the command to its end, wall clock."""
    leftovers: Count = 0
    """Processes that outlived the command itself and were ended by the host."""
    limit: LimitName | None = None
    """Only with `output-limit`."""
    detail: str = ""
    """For `could-not-start` and `sandbox-failed`: the reason, in plain text."""

    @model_validator(mode="after")
    def _fields_agree_with_kind(self) -> Self:
        if (self.exit_code is not None) != (self.kind == "exited"):
            raise ValueError("exitCode stands exactly with kind exited")
        if (self.signal is not None) != (self.kind == "signalled"):
            raise ValueError("signal stands exactly with kind signalled")
        if (self.limit is not None) != (self.kind == "output-limit"):
            raise ValueError("limit stands exactly with kind output-limit")
        return self


class Executable(Record):
    """The program that argv[0] was resolved to, before it ran."""

    path: str
    """Absolute path inside the enclosure."""
    sha256: Digest


class Command(Record):
    """One command that the host ran in an enclosure, and what it saw of it."""

    argv: tuple[str, ...]
    cwd: str
    """Working directory relative to the root of the working copy; `.` for the root itself."""
    executable: Executable | None
    """Null when argv[0] could not be resolved (`could-not-start`)."""
    outcome: Outcome
    stdout: Excerpt
    stderr: Excerpt
