"""What the battery's tests run it against: the sound backend, and ones with a hole made on purpose."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import pytest

from firsthand.isolation.battery import run_battery
from firsthand.isolation.interface import (
    Availability,
    Available,
    Backend,
    Captured,
    Enclosure,
    Limits,
    ProcessWatch,
    Request,
    Result,
    Workspace,
)
from firsthand.records import BackendIdentity, BatteryReport, Outcome

Examine: TypeAlias = Callable[..., BatteryReport]


def identity_of(backend: Backend) -> BackendIdentity:
    answer = backend.availability()
    assert isinstance(answer, Available)
    return BackendIdentity(
        name=backend.name,
        distribution="tests",
        version="0",
        level="os-sandbox",
        profile_digest=answer.profile_digest,
        launcher=answer.launcher,
    )


@pytest.fixture
def examine(tmp_path: Path) -> Examine:
    """Run the battery in a private folder and see to it that nothing is left there."""

    def call(backend: Backend, *, only: Sequence[str] | None = None) -> BatteryReport:
        workplace = tmp_path / "workplace"
        workplace.mkdir(mode=0o700, exist_ok=True)
        report = run_battery(backend, identity_of(backend), workplace, only=only)
        assert list(workplace.iterdir()) == []
        return report

    return call


@pytest.fixture(scope="session")
def sound() -> Backend:
    """The backend of this machine that is believed to be sound."""
    bubblewrap = pytest.importorskip("firsthand_bubblewrap.backend")
    backend: Backend = bubblewrap.BubblewrapBackend()
    answer = backend.availability()
    if not isinstance(answer, Available):
        pytest.skip(f"no sandbox here: {answer.reason}")
    return backend


@pytest.fixture(scope="session")
def sound_report(sound: Backend, tmp_path_factory: pytest.TempPathFactory) -> BatteryReport:
    return run_battery(sound, identity_of(sound), tmp_path_factory.mktemp("sound"))


class Unconfined:
    """A backend that confines nothing: it keeps the contract's shape, and ends what it can find if told to."""

    def __init__(self, *, tidy: bool = True, leave_descriptors: bool = False) -> None:
        self.name = "unconfined"
        self.tidy = tidy
        self.leave_descriptors = leave_descriptors

    def availability(self) -> Availability:
        return Available(None, hashlib.sha256(b"nothing").hexdigest(), 1000, ends_all=True)

    @contextmanager
    def enclose(self, workspace: Workspace, limits: Limits, processes: ProcessWatch) -> Iterator[Enclosure]:
        yield UnconfinedEnclosure(self, workspace, limits)


class UnconfinedEnclosure:
    def __init__(self, backend: Unconfined, workspace: Workspace, limits: Limits) -> None:
        self._backend, self._workspace, self._limits = backend, workspace, limits

    def run(self, request: Request) -> Result:
        started = time.monotonic()
        mark = f"UNCONFINED_RUN={os.urandom(8).hex()}"
        environment = {**os.environ, **request.environment, "TMPDIR": str(self._workspace.private)}
        environment.update([mark.split("=")])  # type: ignore[list-item]
        kind: dict[str, object] = {}
        with (
            open(self._workspace.private / "out", "w+b") as out,
            open(self._workspace.private / "err", "w+b") as err,
        ):
            try:
                process = subprocess.Popen(
                    [request.executable, *request.argv[1:]],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    cwd=self._workspace.copy,
                    env=environment,
                    close_fds=not self._backend.leave_descriptors,
                    start_new_session=True,
                )
            except OSError as error:
                return self._result({"kind": "could-not-start", "detail": str(error)}, b"", b"", started)
            while process.poll() is None and not kind:
                for name, file in (("stdout", out), ("stderr", err)):
                    if os.fstat(file.fileno()).st_size > self._limits.output_bytes:
                        kind = {"kind": "output-limit", "limit": name}
                if time.monotonic() > started + request.timeout_s:
                    kind = {"kind": "timed-out"}
                time.sleep(0.002)
            if kind:
                process.kill()
            code = process.wait()
            if self._backend.tidy:
                _end_marked(mark.encode())
            out.seek(0)
            err.seek(0)
            if not kind:
                kind = {"kind": "signalled", "signal": -code} if code < 0 else {"kind": "exited", "exit_code": code}
            return self._result(kind, out.read(self._limits.output_bytes), err.read(self._limits.output_bytes), started)

    def rewrite(self, path: str, data: bytes, mode: int) -> None:
        target = self._workspace.copy / path
        target.write_bytes(data)
        target.chmod(mode)

    def _result(self, kind: dict[str, object], out: bytes, err: bytes, started: float) -> Result:
        duration_ms = int((time.monotonic() - started) * 1000)
        outcome = Outcome.model_validate({**kind, "cleanup": "complete", "duration_ms": duration_ms})
        return Result(outcome, _captured(out), _captured(err))


def _captured(data: bytes) -> Captured:
    return Captured(data, len(data), hashlib.sha256(data).hexdigest())


def _end_marked(mark: bytes) -> None:
    """End every process that was started with this mark in its environment, until there is none."""
    found = True
    while found:
        found = False
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                if mark in Path(f"/proc/{name}/environ").read_bytes():
                    found = True
                    os.kill(int(name), signal.SIGKILL)


class Wrapped:
    """A backend around another one, for leaks that need no hole in the sandbox itself."""

    def __init__(
        self,
        inner: Backend,
        *,
        limits: Callable[[Limits], Limits] = lambda limits: limits,
        enclosure: Callable[[Enclosure, Workspace], Enclosure] = lambda enclosure, _: enclosure,
    ) -> None:
        self.name = "wrapped"
        self._inner, self._limits, self._enclosure = inner, limits, enclosure

    def availability(self) -> Availability:
        return self._inner.availability()

    def enclose(
        self, workspace: Workspace, limits: Limits, processes: ProcessWatch
    ) -> AbstractContextManager[Enclosure]:
        @contextmanager
        def opened() -> Iterator[Enclosure]:
            with self._inner.enclose(workspace, self._limits(limits), processes) as enclosure:
                yield self._enclosure(enclosure, workspace)

        return opened()


@pytest.fixture
def unconfined() -> type[Unconfined]:
    return Unconfined


@pytest.fixture
def wrapped() -> type[Wrapped]:
    return Wrapped
