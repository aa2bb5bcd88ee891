"""Snapshots: registered files frozen once, copied exactly, and compared at every step."""

from firsthand.snapshot.comparison import Content
from firsthand.snapshot.drift import CopyDriftError, Difference, DriftError, SourceDriftError
from firsthand.snapshot.snapshot import Snapshot, freeze
from firsthand.snapshot.survey import check_source, survey
from firsthand.snapshot.working_copy import WorkingCopy

__all__ = [
    "Content",
    "CopyDriftError",
    "Difference",
    "DriftError",
    "Snapshot",
    "SourceDriftError",
    "WorkingCopy",
    "check_source",
    "freeze",
    "survey",
]
