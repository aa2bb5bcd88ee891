"""What of the frozen files was really delivered to the reviewer, byte by byte."""

from __future__ import annotations

import bisect

from firsthand.records import Coverage, Manifest


class Delivered:
    """Keeps the byte ranges of each registered file that went out. Not thread-safe.

    Args:
        manifest: the frozen files; only those that are present can be delivered.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._sizes = {entry.path: entry.size for entry in manifest.entries if entry.size is not None}
        self._ranges: dict[str, list[tuple[int, int]]] = {}

    def add(self, path: str, start: int, end: int) -> None:
        """A reply with the bytes from `start` up to `end` was answered; an empty file has the range 0 to 0.

        Raises:
            KeyError: the path is not registered as present.
            ValueError: the range is not in the file.
        """
        if not 0 <= start <= end <= self._sizes[path]:
            raise ValueError(f"{start} to {end} is not in {path}")
        ranges = self._ranges.setdefault(path, [])
        position = bisect.bisect_left(ranges, (start, end))
        ranges.insert(position, (start, end))
        merged: list[tuple[int, int]] = []
        for begin, stop in ranges:
            if merged and begin <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
            else:
                merged.append((begin, stop))
        self._ranges[path] = merged

    def records(self) -> tuple[Coverage, ...]:
        """One record for each file of which something was delivered, in the manifest's order."""
        return tuple(
            Coverage(
                path=path,
                total_bytes=size,
                delivered_bytes=sum(end - start for start, end in self._ranges[path]),
                whole=self._ranges[path] == [(0, size)],
            )
            for path, size in self._sizes.items()
            if path in self._ranges
        )

    def unread(self) -> tuple[str, ...]:
        """The files that are present and were not delivered whole, in the manifest's order."""
        return tuple(path for path, size in self._sizes.items() if self._ranges.get(path) != [(0, size)])
