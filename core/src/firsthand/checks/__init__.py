"""Checks: commands run in lanes, their tests counted, everything entered as records."""

from firsthand.checks.check import PlacedCheck, run_check
from firsthand.checks.errors import CheckError, CleanupUnknownError, LaneInterruptedError
from firsthand.checks.excerpt import EXCERPT_BYTES, excerpt
from firsthand.checks.ground import Ground
from firsthand.checks.lane import Executed, Lane, Standing
from firsthand.checks.recorder import Recorder

__all__ = [
    "EXCERPT_BYTES",
    "CheckError",
    "CleanupUnknownError",
    "Executed",
    "Ground",
    "Lane",
    "LaneInterruptedError",
    "PlacedCheck",
    "Recorder",
    "Standing",
    "excerpt",
    "run_check",
]
