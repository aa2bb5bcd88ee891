"""What a probe is: a question about an enclosure, and the rule by which the core answers it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from firsthand.records import ProbeOutcome

if TYPE_CHECKING:
    from firsthand.isolation.battery.bench import Bench
    from firsthand.isolation.battery.stage import Stage

Side: TypeAlias = Literal["inside", "control"]
"""Where an attempt is made: in the enclosure, or unconfined to show that it works at all."""

Weight: TypeAlias = Literal["must", "where-offered", "shown"]
"""What a probe's result means for the backend.

`must`: anything but `passed` makes the backend unavailable.
`where-offered`: the same, except for `no-control` where the machine itself refuses the attack to everyone, or where
no control may be made by design. An attack that works inside counts in any case.
`shown`: for information.
"""

Line: TypeAlias = Mapping[str, Any]
"""What the program inside said about one attempt: `did` and `saw`, or `errno`, or `error`."""

REFUSED_FILE = frozenset({"ENOENT", "EACCES", "EPERM", "EROFS", "ENOTDIR"})
REFUSED_CALL = frozenset({"EPERM", "EACCES", "ENOSYS"})


def _no_detail(stage: Stage, side: Side) -> Mapping[str, Any]:  # noqa: ARG001 - the default of a callback
    return {}


def _it_did(stage: Stage, side: Side, line: Line) -> bool:  # noqa: ARG001 - the default of a callback
    return bool(line.get("did"))


@dataclass(frozen=True, slots=True)
class Attempt:
    """One thing that the program inside tries, and how the core tells what came of it.

    Attributes:
        id: unique in the battery; also the word for it in a result.
        call: function inside that makes the attempt, `module.function`.
        detail: what the function is told, for each side.
        reached: whether the attempt had its effect; looks at what the host saw first, at the line only where the host
            can see nothing.
        refused: errnos that count as a refusal. Any other one means that the attempt was not really made.
        unoffered: errnos of the control that mean that this machine refuses the attack to everyone.
        controlled: False where no control may be made: it would leave a lasting effect.
    """

    id: str
    call: str
    detail: Callable[[Stage, Side], Mapping[str, Any] | None] = _no_detail
    reached: Callable[[Stage, Side, Line], bool] = _it_did
    refused: frozenset[str] = REFUSED_FILE
    unoffered: frozenset[str] = frozenset()
    controlled: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to a probe.

    Attributes:
        result: as in the record.
        observed: what was seen inside.
        control: what the same attempt did outside.
        offered: False with `no-control` where the machine refuses the attack to everyone, or by design.
    """

    result: ProbeOutcome
    observed: str
    control: str = ""
    offered: bool = True


@dataclass(frozen=True, slots=True)
class Probe:
    """One question about an enclosure.

    Attributes:
        id: stable name, as it stands in reports and refusals.
        question: what it asks, for people.
        weights: platform (`sys.platform`) to weight; a platform that is not named does not ask the question.
        examine: answers it. May run commands through the bench; what it raises counts as `not-run`.
        attempts: made in the one run that all harmless attempts share, inside and as controls.
    """

    id: str
    question: str
    weights: Mapping[str, Weight]
    examine: Callable[[Bench], Finding]
    attempts: tuple[Attempt, ...] = field(default=())

    def weight(self, platform: str = sys.platform) -> Weight:
        """What this probe means on a platform that asks it."""
        return self.weights[platform]


def everywhere(weight: Weight) -> Mapping[str, Weight]:
    """The same weight on each platform that has a backend."""
    return MappingProxyType({"linux": weight, "darwin": weight})


def on_linux(weight: Weight) -> Mapping[str, Weight]:
    """Asked on Linux only."""
    return MappingProxyType({"linux": weight})


def counts(weight: Weight, finding: Finding) -> bool:
    """Whether this answer is required to be `passed`."""
    match weight:
        case "must":
            return True
        case "where-offered":
            return finding.result != "no-control" or finding.offered
        case "shown":
            return False
