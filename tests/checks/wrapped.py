"""A real backend seen through a window: what it is asked for is noted, and one answer can be changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from firsthand.isolation.interface import (
    Availability,
    Backend,
    Enclosure,
    Limits,
    ProcessWatch,
    Request,
    Result,
    Workspace,
)

Change = Callable[[int, Request, Result], Result]
"""Gets the number of the command, from 1, and its real result; may raise."""


class Wrapped:
    """Runs everything for real; `change` then sees each result."""

    name = "wrapped"

    def __init__(self, real: Backend, change: Change | None = None) -> None:
        self.workspaces: list[Workspace] = []
        self.requests: list[Request] = []
        self.rewrites: list[tuple[str, bytes, int]] = []
        self._real = real
        self._change = change

    def availability(self) -> Availability:
        return self._real.availability()

    def enclose(
        self, workspace: Workspace, limits: Limits, processes: ProcessWatch
    ) -> AbstractContextManager[Enclosure]:
        return self._enclose(workspace, limits, processes)

    @contextmanager
    def _enclose(self, workspace: Workspace, limits: Limits, processes: ProcessWatch) -> Iterator[Enclosure]:
        self.workspaces.append(workspace)
        with self._real.enclose(workspace, limits, processes) as enclosure:
            yield _Window(self, enclosure)

    def answer(self, request: Request, result: Result) -> Result:
        self.requests.append(request)
        return result if self._change is None else self._change(len(self.requests), request, result)


class _Window:
    def __init__(self, wrapped: Wrapped, enclosure: Enclosure) -> None:
        self._wrapped = wrapped
        self._enclosure = enclosure

    def run(self, request: Request) -> Result:
        return self._wrapped.answer(request, self._enclosure.run(request))

    def rewrite(self, path: str, data: bytes, mode: int) -> None:
        self._wrapped.rewrites.append((path, data, mode))
        self._enclosure.rewrite(path, data, mode)


def lose_the_end(of: int) -> Change:
    """Say of one command that its end could not be established."""

    def change(number: int, request: Request, result: Result) -> Result:
        if number != of:
            return result
        outcome = result.outcome.model_copy(update={"cleanup": "unknown"})
        return Result(outcome=outcome, stdout=result.stdout, stderr=result.stderr)

    return change


def interrupt(at: int) -> Change:
    """Break off in one command, as a terminal's interrupt does."""

    def change(number: int, request: Request, result: Result) -> Result:
        if number == at:
            raise KeyboardInterrupt
        return result

    return change
