"""The program inside: makes each attempt that it is told to make and reports what came of it, one JSON line each.

It judges nothing. Whether an attempt that failed counts as stopped is decided on the host, from what the host saw.
"""

from __future__ import annotations

import errno
import importlib
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

PACKAGE = "firsthand.isolation.battery.inside"


def main(argv: Sequence[str]) -> int:
    """Make the attempts of one order.

    Args:
        argv: program name, name of the run (for process lists), the order as JSON:
            `{"nonce": ..., "attempts": [{"id": ..., "call": "module.function", ...}]}`.
    """
    order = json.loads(argv[2])
    for attempt in order["attempts"]:
        line = {"nonce": order["nonce"], "id": attempt["id"], **make(attempt)}
        _write_all(json.dumps(line).encode("ascii") + b"\n")
    return 0


def make(attempt: dict[str, Any]) -> dict[str, Any]:
    """Make one attempt: `did` with what it saw, or the errno that stopped it, or an error of the probe itself."""
    module, _, name = attempt["call"].partition(".")
    try:
        function: Callable[[dict[str, Any]], str] = getattr(importlib.import_module(f"{PACKAGE}.{module}"), name)
        return {"did": True, "saw": function(attempt)}
    except OSError as error:
        code = error.errno or 0
        return {"did": False, "errno": errno.errorcode.get(code, str(code)), "saw": str(error.strerror)}
    except Exception as error:  # noqa: BLE001 - reported as it is: the host counts it as an attempt that was not made
        return {"did": False, "error": f"{type(error).__name__}: {error}"}


def _write_all(line: bytes) -> None:
    while line:
        line = line[os.write(1, line) :]
