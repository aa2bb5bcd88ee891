"""What ends a lane."""

from __future__ import annotations

from pathlib import Path

from firsthand.errors import FirsthandError


class CheckError(FirsthandError):
    """A check could not be run as it should be."""

    default_code = "check_inconclusive"


class CleanupUnknownError(CheckError):
    """A command's end could not be established; nothing more runs in this session and its copy is kept.

    Attributes:
        copy: the working copy that is kept.
    """

    default_code = "review_verification_cleanup_unknown"

    def __init__(self, copy: Path) -> None:
        self.copy = copy
        super().__init__(
            "the end of a command's processes could not be established; the working copy is kept",
            where=str(copy),
            next_step="look for processes that hold the copy, then run `firsthand residues --clean`",
        )


class LaneInterruptedError(CheckError):
    """A command or rewrite was broken off, so the state of the working copy is not known; it is discarded."""

    def __init__(self, copy: Path) -> None:
        super().__init__(
            "a command was broken off; the working copy is discarded",
            where=str(copy),
            next_step="start again; the source is untouched",
        )
