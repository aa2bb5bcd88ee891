"""What the process room asks the operating system, so that the same driving code is tested on other systems too."""

from __future__ import annotations

from typing import Protocol


class ExitWatch(Protocol):
    """Tells when one child has ended, without collecting it: a collected pid can be recycled, an uncollected can't."""

    def fileno(self) -> int:
        """A descriptor that becomes readable when the child ends."""

    def ended(self) -> bool:
        """Whether the child has ended; asked after the descriptor became readable, or at any time."""

    def close(self) -> None:
        """Give the descriptor back."""


class Kernel(Protocol):
    """The few questions that differ between systems."""

    def watch_exit(self, pid: int) -> ExitWatch:
        """Watch an uncollected child; right also for one that has ended already."""

    def group(self, group_id: int) -> tuple[int, ...] | None:
        """The processes of a group, zombies left out; None when they can't be listed."""

    def processes_of(self, uid: int) -> int | None:
        """How many processes a user has; None when they can't be counted."""

    def kill_group(self, group_id: int) -> None:
        """SIGKILL to a group.

        Raises:
            ProcessLookupError: the group is empty.
            PermissionError: on macOS also when it holds nothing but zombies.
        """
