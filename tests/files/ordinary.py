"""Run a piece of a test as an ordinary user: root passes every permission, so it can't show that we need none."""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from firsthand.files import remove_path

NOBODY = 65534


@contextmanager
def ground() -> Iterator[Path]:
    """A folder of the ordinary user's own; not below pytest's, which is shut again by every session that starts."""
    path = Path(tempfile.mkdtemp(prefix="firsthand-test-"))
    try:
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        yield path
    finally:
        remove_path(path)


def as_ordinary_user(work: Callable[[], None]) -> None:
    """Call `work` as an ordinary user: in a child of its own when this is root. Fails with the child's traceback.

    A fork without exec: the interpreter may lie where that user can't reach it.
    """
    if os.geteuid() != 0:
        work()
        return
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            work()
        except BaseException:  # noqa: BLE001 - everything goes to the parent
            os.write(writer, traceback.format_exc().encode()[-60_000:])
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        failure = stream.read().decode()
    os.waitpid(child, 0)
    assert failure == "", failure
