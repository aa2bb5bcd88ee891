"""Work on many files in a few lanes: reading, hashing and writing let other threads run meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

MOST_LANES: Final = 4
_ALONE: Final = 24
"""Up to this many files, starting threads costs more than they save."""
_PORTION: Final = 16


def in_lanes(items: Sequence[Item], work: Callable[[Sequence[Item]], list[Answer]]) -> list[Answer]:
    """The answers of all items, in order; `work` gets portions of neighbours and may run in several threads at once.

    Raises:
        whatever `work` raises, for the first portion that did; all portions have ended by then.
    """
    lanes = min(MOST_LANES, os.cpu_count() or 1)
    if len(items) <= _ALONE or lanes == 1:
        return work(items)
    portions = [items[start : start + _PORTION] for start in range(0, len(items), _PORTION)]
    with ThreadPoolExecutor(lanes, thread_name_prefix="firsthand-files") as pool:
        return [answer for answers in pool.map(work, portions) for answer in answers]
