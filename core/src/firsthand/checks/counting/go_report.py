"""The events of `go test -json`, which GOFLAGS asks for: one JSON object a line on stdout, other lines between."""

from __future__ import annotations

import json
import re
from typing import Final

from firsthand.checks.counting.tally import SingleTest, TestState

_NOISE: Final = re.compile(r"\s*(?:===|---|PASS\b|FAIL\b|ok\b|exit status|panic: .*\[recovered\])")
_CRASHES: Final = ("panic: ", "fatal error: ", "signal: ")
_STATES: Final[dict[str, TestState]] = {"pass": "passed", "fail": "failed", "skip": "skipped"}


def read_go_events(stdout: bytes) -> tuple[list[SingleTest], bool]:
    """The tests, and whether every package and test came to its end.

    A package that passed without running a test, and does not say that it has none, ended before its tests did. One
    that panicked took the tests after the panic with it.
    """
    ended: dict[tuple[str, str], TestState] = {}
    begun: set[tuple[str, str]] = set()
    packages: dict[str, str] = {}
    said: dict[tuple[str, str], str] = {}
    empty: set[str] = set()
    crashed = False
    for line in stdout.split(b"\n"):
        event = _parse(line)
        if event is None:
            continue
        action, package, test, output = event
        key = (package, test)
        crashed = crashed or (action == "output" and output.startswith(_CRASHES))
        if not test:
            packages[package] = action if action in _STATES else packages.get(package, "")
            if "no test files" in output or "no tests to run" in output:
                empty.add(package)
        elif action == "run":
            begun.add(key)
        elif action in _STATES:
            ended[key] = _STATES[action]
        if test and action == "output" and key not in said and not _NOISE.match(output) and output.strip():
            said[key] = output.strip()
    tests = [
        SingleTest(f"{package}.{test}", state, said.get((package, test), ""))
        for (package, test), state in ended.items()
    ]
    tested = {package for package, _ in ended}
    silent = any(state == "pass" and package not in tested | empty for package, state in packages.items())
    complete = bool(packages) and all(packages.values()) and begun <= ended.keys() and not silent
    return tests, complete and not crashed


def _parse(line: bytes) -> tuple[str, str, str, str] | None:
    """Action, package, test (empty for the package itself) and output of one event; None for any other line."""
    if not line.startswith(b'{"'):
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    fields = [value.get(name, "") for name in ("Action", "Package", "Test", "Output")]
    texts = [field for field in fields if isinstance(field, str)]
    if len(texts) != 4 or not texts[1] or texts[0].startswith("build-"):
        return None
    return texts[0], texts[1], texts[2], texts[3]
