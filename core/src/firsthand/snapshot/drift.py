"""What differs from what was frozen, file by file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from firsthand.errors import FirsthandError

DifferenceKind: TypeAlias = Literal["missing", "appeared", "kind", "mode", "links", "size", "bytes", "leftover"]
"""`missing`: a registered file is gone. `appeared`: one that was missing exists. `kind`: no regular file any more, or
one that can't be read without following a link. `links`: another name leads to the same inode, which the copies never
have. `leftover`: something unregistered that could not be removed."""

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Difference:
    """One path and what differs there."""

    path: str
    kind: DifferenceKind
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.kind}" + (f" ({self.detail})" if self.detail else "")


class DriftError(FirsthandError):
    """Registered files are not what was frozen. `differences` names each, in the manifest's order; never empty."""

    what: ClassVar[str] = ""
    default_next: ClassVar[str] = ""

    def __init__(self, differences: Iterable[Difference]) -> None:
        self.differences = tuple(differences)
        shown = "; ".join(str(difference) for difference in self.differences[:_SHOWN])
        more = f"; and {len(self.differences) - _SHOWN} more" if len(self.differences) > _SHOWN else ""
        super().__init__(f"{self.what}: {shown}{more}", where=self.differences[0].path, next_step=self.default_next)


class CopyDriftError(DriftError):
    """A copy no longer holds what was frozen: a command, or something else, changed it."""

    default_code = "review_verification_copy_drift"
    what = "the copy differs from what was frozen"
    default_next = "keep the check from changing registered files, or register less, and start again"


class SourceDriftError(DriftError):
    """The source no longer holds what was frozen: someone changed it meanwhile."""

    default_code = "review_verification_source_drift"
    what = "the source differs from what was frozen"
    default_next = "let the source rest and start again"
