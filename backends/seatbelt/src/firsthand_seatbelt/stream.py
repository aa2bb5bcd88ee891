"""One output stream of a command: at most the limit is kept, all that was read is counted and hashed."""

from __future__ import annotations

import hashlib
import os
from typing import Final, Literal

from firsthand.isolation.interface import Captured

_CHUNK_BYTES: Final = 64 * 1024


class Stream:
    """The reading end of a pipe; non-blocking.

    Attributes:
        over: more than the limit was read.
        closed: every writer is gone.
    """

    def __init__(self, name: Literal["stdout", "stderr"], descriptor: int, limit_bytes: int) -> None:
        os.set_blocking(descriptor, False)
        self.name = name
        self.descriptor = descriptor
        self.closed = False
        self._limit_bytes = limit_bytes
        self._kept = bytearray()
        self._total = 0
        self._digest = hashlib.sha256()

    @property
    def over(self) -> bool:
        """Whether the stream printed more than it may."""
        return self._total > self._limit_bytes

    def read(self) -> None:
        """Take what is there, one chunk at most."""
        try:
            chunk = os.read(self.descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            self.closed = True
            return
        self._total += len(chunk)
        self._digest.update(chunk)
        self._kept += chunk[: max(0, self._limit_bytes - len(self._kept))]

    def text(self) -> str:
        """What was kept, for a message: one short line, foreign bytes escaped."""
        return " ".join(self._kept[:400].decode("ascii", "backslashreplace").split())

    def captured(self) -> Captured:
        """What was read so far."""
        return Captured(data=bytes(self._kept), total_bytes=self._total, sha256=self._digest.hexdigest())
