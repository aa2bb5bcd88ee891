"""A real enclosure around a small working copy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from firsthand.isolation.interface import Enclosure, Limits, Request, Result, Unavailable, Workspace
from firsthand_bubblewrap.backend import BubblewrapBackend

SHOWN_AT = Path("/srv/firsthand-test/project")


@dataclass
class Watch:
    """Remembers what the backend registered."""

    alive: set[int] = field(default_factory=set)
    seen: list[int] = field(default_factory=list)

    def started(self, pid: int) -> None:
        self.alive.add(pid)
        self.seen.append(pid)

    def ended(self, pid: int) -> None:
        self.alive.remove(pid)


@dataclass
class Bench:
    """An open enclosure and what surrounds it."""

    enclosure: Enclosure
    copy: Path
    watch: Watch

    def run(self, *argv: str, timeout_s: float = 10.0, **fields: Any) -> Result:
        return self.enclosure.run(Request(argv=argv, executable=argv[0], timeout_s=timeout_s, **fields))

    def shell(self, script: str, timeout_s: float = 10.0, **fields: Any) -> Result:
        return self.run("/usr/bin/sh", "-c", script, timeout_s=timeout_s, **fields)


@pytest.fixture(scope="session")
def backend() -> BubblewrapBackend:
    if sys.platform != "linux":
        pytest.skip("bubblewrap needs Linux")
    found = BubblewrapBackend()
    state = found.availability()
    if isinstance(state, Unavailable):
        pytest.skip(state.reason)
    return found


@pytest.fixture
def make_bench(backend: BubblewrapBackend, tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    opened: list[Any] = []

    def make(limits: Limits | None = None, **fields: Any) -> Bench:
        copy, private = tmp_path / f"copy{len(opened)}", tmp_path / f"private{len(opened)}"
        copy.mkdir(mode=0o700)
        private.mkdir(mode=0o700)
        (copy / "a.txt").write_text("hello\n")
        settings = {"shown_at": SHOWN_AT, "token": "test", **fields}
        workspace = Workspace(copy=copy, private=private, **settings)
        watch = Watch()
        context = backend.enclose(workspace, limits or Limits(), watch)
        opened.append((context, watch))
        return Bench(context.__enter__(), copy, watch)

    yield make
    for context, watch in opened:
        context.__exit__(None, None, None)
        assert not watch.alive, "a process was registered and never proved gone"


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench()
