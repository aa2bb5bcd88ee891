"""What a session left behind, as `residues` and `doctor` show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

ResidueKind: TypeAlias = Literal["tree", "credential", "process", "kept", "session", "entry"]
"""`kept`: a copy kept on purpose; `session`: a session's own folder; `entry`: something that is not ours."""

ResidueState: TypeAlias = Literal["left", "removed", "ended", "kept", "unknown"]
"""`left`: found by a listing; `removed`, `ended`: dealt with by a sweep; `kept`: stays until it is cleaned on demand;
`unknown`: its end could not be established, or it resisted; the next sweep tries again."""


@dataclass(frozen=True, slots=True)
class Residue:
    """One thing that a session left."""

    kind: ResidueKind
    where: str
    """Absolute path, or `pid N`."""
    session: str
    """Id of the session; the entry's name for `entry`."""
    state: ResidueState
    reason: str
