"""Opening files of our own, 0600 whatever the umask."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

PRIVATE_FILE: Final = 0o600
_ALWAYS: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def open_private(path: Path, flags: int) -> int:
    """Open, and with `O_CREAT` make, a private file; no link is followed. The caller closes the descriptor.

    Raises:
        OSError: it can't be opened.
    """
    descriptor = os.open(path, flags | _ALWAYS, PRIVATE_FILE)
    # The umask may have taken bits of the owner's; the mode given above is never wider.
    if flags & os.O_CREAT and os.name == "posix" and os.fstat(descriptor).st_mode & 0o777 != PRIVATE_FILE:
        os.fchmod(descriptor, PRIVATE_FILE)
    return descriptor
