"""The events of node's test runner, one JSON array a line, as our own reporter writes them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

from firsthand.checks.counting.tally import SingleTest, TestState, UnreadableReportError


@dataclass(frozen=True, slots=True)
class _Event:
    kind: str
    file: str
    nesting: int
    name: str
    suite: bool
    skipped: bool
    message: str

    @property
    def is_file(self) -> bool:
        """Whether this is node's stand-in for a whole file, which is no test.

        Node reports one where a file failed to load, ended before any of its tests did, or holds none.
        """
        return self.nesting == 0 and (self.name == self.file or self.name.endswith(f"/{self.file}"))


def read_events(data: bytes) -> tuple[list[SingleTest], bool]:
    """The tests of a report, and whether every test that was announced also ended.

    Raises:
        UnreadableReportError: a line that the reporter does not write.
    """
    lines = data.split(b"\n")
    # A last line without its end was cut off while it was written.
    complete = lines.pop() == b"" and lines[-1:] == [b'["end"]']
    tests: list[SingleTest] = []
    pending: Counter[tuple[str, int, str]] = Counter()
    above: list[str] = []
    for line in lines:
        event = _parse(line)
        if event is None:
            continue
        key = (event.file, event.nesting, event.name)
        if event.kind == "enqueue":
            pending[key] += 0 if event.is_file else 1
        elif event.kind == "start":
            above = [*above[: event.nesting], event.name]
        else:
            pending[key] -= 1
            if event.is_file:
                complete = False
            elif not event.suite:
                tests.append(_single(event, above))
    return tests, complete and not any(count > 0 for count in pending.values())


def _single(event: _Event, above: list[str]) -> SingleTest:
    state: TestState = "skipped" if event.skipped else "failed" if event.kind == "fail" else "passed"
    parents = above[: event.nesting]
    return SingleTest(" > ".join((event.file, *parents, event.name)), state, event.message)


def _parse(line: bytes) -> _Event | None:
    """One line; None for the end mark."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UnreadableReportError("a line is not JSON") from error
    match value:
        case ["end"]:
            return None
        case [
            "enqueue" | "start" | "pass" | "fail" as kind,
            str(file),
            int(nesting),
            str(name),
            str(group),
            bool(skip),
            bool(todo),
            str(message),
        ]:
            return _Event(kind, file, nesting, name, group == "suite", skip or todo, message)
        case _:
            raise UnreadableReportError("a line is not an event of the reporter")
