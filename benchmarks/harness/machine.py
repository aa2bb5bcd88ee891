"""The machine that figures were measured on, as far as it matters for reading them."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime


def machine() -> dict[str, str | int | float]:
    """Kind, cores, load and date; no names of hosts or folders."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "system": platform.system(),
        "kernel": platform.release().partition("-")[0],
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "load_1min": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else -1.0,
        "python": platform.python_version(),
        "root": int(hasattr(os, "geteuid") and os.geteuid() == 0),
    }


def told(found: dict[str, str | int | float]) -> str:
    """One line for people."""
    user = "root" if found["root"] else "an ordinary user"
    return (
        f"{found['date']}, {found['system']} {found['kernel']} {found['machine']}, {found['cores']} cores, "
        f"load {found['load_1min']}, Python {found['python']}, as {user}"
    )
