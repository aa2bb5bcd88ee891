"""Linux's answers to what the process room asks, so that its driving code runs here for real."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path


class LinuxExitWatch:
    def __init__(self, pid: int) -> None:
        self._pidfd = os.pidfd_open(pid)

    def fileno(self) -> int:
        return self._pidfd

    def ended(self) -> bool:
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        os.close(self._pidfd)


class Linux:
    """See `firsthand_seatbelt.kernel.Kernel`."""

    def watch_exit(self, pid: int) -> LinuxExitWatch:
        return LinuxExitWatch(pid)

    def group(self, group_id: int) -> tuple[int, ...] | None:
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    fields = Path(f"/proc/{name}/stat").read_text(errors="replace").rpartition(")")[2].split()
                except OSError:
                    continue
                if int(fields[2]) == group_id and fields[0] not in "ZX":
                    found.append(int(name))
        return tuple(found)

    def processes_of(self, uid: int) -> int | None:
        return len([name for name in os.listdir("/proc") if name.isdigit()])

    def kill_group(self, group_id: int) -> None:
        os.killpg(group_id, signal.SIGKILL)
