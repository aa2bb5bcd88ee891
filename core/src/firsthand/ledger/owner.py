"""Who holds a round: a process, told apart from another with the same pid, and for how long."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from firsthand.residues import ProcessIdentity, boot_id, identify
from firsthand.residues.identity import is_over


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that claimed a round.

    Attributes:
        identity: pid, start time and boot id: a pid that was given to another process later is not it.
        lease_until_ms: on `boot_clock_ms`. No wall clock is asked, so setting the clock neither frees nor holds.
    """

    identity: ProcessIdentity
    lease_until_ms: int

    def holds(self) -> bool:
        """Whether this process can still end its round: same boot, same process, lease not over.

        Where the platform does not tell when a process started, the lease alone decides.
        """
        if self.identity.boot != boot_id() or boot_clock_ms() >= self.lease_until_ms:
            return False
        if not self.identity.start:
            return True
        if identify(self.identity.pid) != self.identity:
            return False
        # An ended process whose parent has not collected it still has its pid.
        return sys.platform != "linux" or not is_over(self.identity.pid)


def boot_clock_ms() -> int:
    """Milliseconds since this boot, time asleep included where the platform counts it; nobody can set it."""
    nanoseconds = time.clock_gettime_ns(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic_ns()
    return nanoseconds // 1_000_000
