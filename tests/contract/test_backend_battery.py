"""Every backend that says it can confine here passes the whole battery, live."""

from __future__ import annotations

import time
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from firsthand.isolation.battery import platform_probes, run_battery
from firsthand.isolation.interface import Available, Backend, IsolationError
from firsthand.isolation.selection import BrokenCandidate, Candidate, select
from firsthand.records import BackendIdentity


def test_every_required_probe_passes(
    backend: Backend, available: Available, backend_entry: EntryPoint, tmp_path: Path
) -> None:
    assert backend_entry.dist is not None
    identity = BackendIdentity(
        name=backend_entry.name,
        distribution=backend_entry.dist.name,
        version=backend_entry.dist.version,
        level="os-sandbox",
        profile_digest=available.profile_digest,
        launcher=available.launcher,
    )
    report = run_battery(backend, identity, tmp_path)
    bad = [probe for probe in report.probes if probe.required and probe.result != "passed"]
    assert bad == []
    assert report.passed
    assert [probe.id for probe in report.probes] == [probe.id for probe in platform_probes()]
    assert sum(probe.result == "passed" for probe in report.probes) >= 24
    assert list(tmp_path.iterdir()) == []


def test_it_is_selected_and_the_second_time_from_the_cache(
    backend: Backend, backend_entry: EntryPoint, tmp_path: Path
) -> None:
    candidates: list[Candidate | BrokenCandidate] = [
        BrokenCandidate("broken", "d", "1", "no module", "reinstall"),
        Candidate(backend_entry.name, "tests", "1", backend),
    ]
    first = select(candidates, tmp_path / "cache", lambda: tmp_path)
    started = time.perf_counter()
    second = select(candidates, tmp_path / "cache", _never)
    assert time.perf_counter() - started < 1.0
    assert (first.cached, second.cached) == (False, True)
    assert second.report == first.report


def _never() -> Path:
    raise AssertionError("a warm cache needs no place to work")


def test_an_unavailable_backend_is_refused_by_its_own_reason(
    loaded: Backend, backend_entry: EntryPoint, tmp_path: Path
) -> None:
    answer = loaded.availability()
    if isinstance(answer, Available):
        pytest.skip(f"{loaded.name} can confine here")
    with pytest.raises(IsolationError) as caught:
        select([Candidate(backend_entry.name, "tests", "1", loaded)], tmp_path / "cache", _never)
    assert answer.reason in caught.value.message
    assert caught.value.next_step == answer.next_step
