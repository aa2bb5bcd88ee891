"""The one error root, with a stable code, and the exit status that each code stands for.

Source of the codes and of their exit statuses: the contract's table of codes. Only the command line prints or exits.
"""

from __future__ import annotations

from typing import ClassVar, Final

EXIT_GOOD: Final = 0
EXIT_NEGATIVE: Final = 1
EXIT_USAGE: Final = 2
EXIT_REFUSED: Final = 3
EXIT_UNKNOWN: Final = 4

EXIT_STATUS_BY_CODE: Final[dict[str, int]] = {
    "review_verification_definition": EXIT_USAGE,
    "review_verification_definition_changed": EXIT_USAGE,
    "usage": EXIT_USAGE,
    "plan_invalid": EXIT_USAGE,
    "mutation_not_applied": EXIT_USAGE,
    "key_invalid": EXIT_USAGE,
    "plugin_invalid": EXIT_USAGE,
    "state_invalid": EXIT_USAGE,
    "review_verification_provider": EXIT_REFUSED,
    "tool_preflight_missing": EXIT_REFUSED,
    "review_verification_isolation_unavailable": EXIT_REFUSED,
    "review_verification_package_binding": EXIT_REFUSED,
    "provider-config-unreadable": EXIT_REFUSED,
    "round_taken": EXIT_REFUSED,
    "rounds_exhausted": EXIT_REFUSED,
    "no-auth": EXIT_REFUSED,
    "review_verification_source_drift": EXIT_NEGATIVE,
    "review_verification_copy_drift": EXIT_NEGATIVE,
    "review_verification_baseline_failed": EXIT_NEGATIVE,
    "review_verification_evidence": EXIT_NEGATIVE,
    "isolation-breach": EXIT_NEGATIVE,
    "mutation_survived": EXIT_NEGATIVE,
    "review_rejected": EXIT_NEGATIVE,
    "review_blocked": EXIT_NEGATIVE,
    "evidence_invalid": EXIT_NEGATIVE,
    "evidence_stale": EXIT_NEGATIVE,
    "review_verification_cleanup_unknown": EXIT_UNKNOWN,
    "check_inconclusive": EXIT_UNKNOWN,
    "mutation_inconclusive": EXIT_UNKNOWN,
    "round_unknown": EXIT_UNKNOWN,
}
"""Every code that Firsthand speaks, with the exit status of the process that reports it."""


class FirsthandError(Exception):
    """Root of all errors that Firsthand raises on purpose.

    Attributes:
        code: stable, one of `EXIT_STATUS_BY_CODE`.
        message: what failed, in one sentence.
        where: the field, path or command concerned; empty where there is none.
        next_step: what the reader can do about it; never empty.
    """

    default_code: ClassVar[str] = "usage"

    def __init__(self, message: str, *, where: str = "", next_step: str, code: str | None = None) -> None:
        self.code = code or self.default_code
        if self.code not in EXIT_STATUS_BY_CODE:
            raise ValueError(f"unknown error code {self.code!r}")
        self.message = message
        self.where = where
        self.next_step = next_step
        super().__init__(message)

    @property
    def exit_status(self) -> int:
        """The exit status that the command line ends with when it reports this error."""
        return EXIT_STATUS_BY_CODE[self.code]

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        return f"{self.code}: {self.message}{place}. Next: {self.next_step}"


class UsageError(FirsthandError):
    """The command line or a file given on it can't be used as it is."""

    default_code = "usage"


class StateError(FirsthandError):
    """The private state directory can't be used: wrong place, owner, mode or kind."""

    default_code = "state_invalid"


class PluginError(FirsthandError):
    """A plug-in is missing, broken, ambiguous or breaks its contract."""

    default_code = "plugin_invalid"
