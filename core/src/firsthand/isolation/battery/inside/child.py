"""Attempts that change the process that makes them are made in a child of their own."""

from __future__ import annotations

import os
from collections.abc import Callable


def in_child(function: Callable[[], str]) -> str:
    """Run a function in a forked child and hand on its result.

    Raises:
        OSError: what the function raised, with the same errno.
        RuntimeError: the child ended without a report.
    """
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receive)
        try:
            os.write(send, b"0 " + function().encode())
        except OSError as error:
            os.write(send, f"{error.errno or 0} {error.strerror}".encode())
        finally:
            os._exit(0)
    os.close(send)
    try:
        report = os.read(receive, 65536)
    finally:
        os.close(receive)
        os.waitpid(child, 0)
    number, _, text = report.decode().partition(" ")
    if not number:
        raise RuntimeError("the child ended without a report")
    if number != "0":
        raise OSError(int(number), text)
    return text
