"""What a benchmark answers: rows of two sides and one figure, or the reason why it can't run here."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Figure: TypeAlias = Literal["ratio", "added", "own"]
"""How the figure comes about: own by other, own less other, or own alone."""
Verdict: TypeAlias = Literal["within", "within by minimum", "over", ""]

MS: Final = 1000.0


class CannotRunError(Exception):
    """A benchmark has something missing here; its message says what."""


@dataclass(frozen=True, slots=True)
class Samples:
    """All values of one side, in the row's unit, in the order in which they were measured."""

    name: str
    values: tuple[float, ...]

    @classmethod
    def of_seconds(cls, name: str, seconds: Sequence[float]) -> Samples:
        """Times in milliseconds from times in seconds."""
        return cls(name, tuple(value * MS for value in seconds))

    @property
    def median(self) -> float:
        """The middle value: what to expect."""
        return statistics.median(self.values)

    @property
    def least(self) -> float:
        """The smallest value: what is left when nothing else runs."""
        return min(self.values)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure.

    Attributes:
        about: what was done.
        own: this program's side.
        other: what it is compared with; None where the figure stands alone.
        figure: how it comes about.
        unit: of the values, and of the figure where it is no ratio.
        limit: the most that the figure should be; None where the row is only shown.
        note: what a reader needs to judge it.
    """

    about: str
    own: Samples
    other: Samples | None
    figure: Figure
    unit: str = "ms"
    limit: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse a row that has nothing in it, or no second side where one is needed."""
        if not self.own.values or (self.other is not None and not self.other.values):
            raise ValueError(f"{self.about}: no values")
        if (self.other is None) != (self.figure == "own"):
            raise ValueError(f"{self.about}: {self.figure} needs {'one side' if self.figure == 'own' else 'two sides'}")

    @property
    def by_median(self) -> float:
        """The figure made of the medians."""
        return self._of(self.own.median, self.other.median if self.other is not None else None)

    @property
    def by_least(self) -> float:
        """The figure made of the minima."""
        return self._of(self.own.least, self.other.least if self.other is not None else None)

    @property
    def verdict(self) -> Verdict:
        """How the figure stands to its limit; empty without one."""
        if self.limit is None:
            return ""
        if self.by_median <= self.limit:
            return "within"
        return "within by minimum" if self.by_least <= self.limit else "over"

    def _of(self, own: float, other: float | None) -> float:
        if other is None:
            return own
        return own / other if self.figure == "ratio" else own - other


@dataclass(frozen=True, slots=True)
class Report:
    """One benchmark's answer.

    Attributes:
        name: of the benchmark.
        rows: its figures; empty when it could not run.
        reason: why it could not run; empty when it did.
        seconds: how long it took in all.
    """

    name: str
    rows: tuple[Row, ...]
    reason: str
    seconds: float
