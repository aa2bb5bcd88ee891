"""What all lanes of a session stand on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from firsthand.isolation.interface import Backend, Limits, ProcessWatch, Workspace
from firsthand.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Ground:
    """The frozen files, the place and the confinement that lanes are opened with.

    Attributes:
        snapshot: what was frozen.
        folder: private (0700) folder of the session, outside the source; working copies are made in it. Whoever made
            it enters it into the register of residues and removes it.
        backend: the one that passed the battery.
        ends_all: whether it proves the end of every descendant; if not, every command gets a fresh copy and enclosure.
        template: the workspace of every lane but for `copy` and `private`, which each lane sets.
        limits: what one command may use.
        processes: where the backend enters what it starts.
    """

    snapshot: Snapshot
    folder: Path
    backend: Backend
    ends_all: bool
    template: Workspace
    limits: Limits
    processes: ProcessWatch
