"""The one list of probes, and the digest of everything that asks and judges them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from firsthand.isolation.battery.probes import kernel, limits, macos, network, processes, reading, working, writing

PROBES = (
    *processes.PROBES,
    *working.PROBES,
    *network.PROBES,
    *reading.PROBES,
    *writing.PROBES,
    *kernel.PROBES,
    *macos.PROBES,
    *limits.PROBES,
)
"""Every probe of every platform. The order is that of attempts and of reports."""


def battery_digest() -> str:
    """SHA-256 over names and bytes of the battery's own source files: a report names the questions it answers."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix().encode()
        content = path.read_bytes()
        digest.update(b"%d %b %d\n" % (len(name), name, len(content)))
        digest.update(content)
    return digest.hexdigest()
