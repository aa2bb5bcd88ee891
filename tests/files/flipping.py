"""An attacker that swaps a name between what is inside and a link to what is outside, as fast as it can."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

INSIDE = b"inside\n" * 64
OUTSIDE = b"outside\n" * 64

# Exchanges two names in one step, so that there is no moment in which the name is absent; where that system call is
# missing, by three renames.
FLIPPER = """
import ctypes, os, sys
good, evil = (os.fsencode(name) for name in sys.argv[1:])
libc = ctypes.CDLL(None)
exchange = getattr(libc, "renameat2", None)
print("flipping", flush=True)
while True:
    if exchange is None or exchange(-100, good, -100, evil, 2):
        spare = good + b".spare"
        os.rename(good, spare); os.rename(evil, good); os.rename(spare, evil)
"""


@contextmanager
def flipping(good: Path, evil: Path) -> Iterator[None]:
    """Swap the two paths in a process of its own, from before the block starts until after it ends."""
    with subprocess.Popen([sys.executable, "-c", FLIPPER, str(good), str(evil)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"flipping\n"
        try:
            yield
        finally:
            process.kill()
