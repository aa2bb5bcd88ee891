"""One exact replacement in a file's bytes, or the reason why it is not applied.

Nothing is decoded, normalised or guessed: `old` must stand in the bytes exactly once, overlaps counted, so that the
mutated file differs from the original in the replaced span and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

from firsthand.records import Mutation, MutationCause
from firsthand.rules import LIMIT_SIDE_BYTES


@dataclass(frozen=True, slots=True)
class Replacement:
    """A mutation that applies: where `old` stands, and the whole file with `new` in its place."""

    offset_bytes: int
    data: bytes


def replace_once(  # noqa: PLR0911 # one return a refusal
    original: bytes, mutation: Mutation
) -> Replacement | MutationCause:
    """Apply a mutation to a file's exact bytes.

    Returns:
        The replacement, or why there is none: `old-equals-new`, `too-large` (a side over 16 KiB), `not-utf-8`,
        `old-absent` (also for an empty `old`, which stands nowhere in particular), `old-not-unique`.
    """
    if mutation.old == mutation.new:
        return "old-equals-new"
    try:
        old, new = mutation.old.encode(), mutation.new.encode()
    except UnicodeEncodeError:
        return "not-utf-8"
    if max(len(old), len(new)) > LIMIT_SIDE_BYTES:
        return "too-large"
    try:
        original.decode("utf-8")
    except UnicodeDecodeError:
        return "not-utf-8"
    offset = original.find(old) if old else -1
    if offset < 0:
        return "old-absent"
    # From the next byte on, not from the end of the first hit: 'aa' stands twice in 'aaa'.
    if original.find(old, offset + 1) >= 0:
        return "old-not-unique"
    return Replacement(offset, original[:offset] + new + original[offset + len(old) :])
