from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firsthand.isolation.battery import PROBES, battery_digest, platform_probes, run_battery, verdict
from firsthand.isolation.battery import catalogue as catalogue_module
from firsthand.isolation.battery import stage as stage_module
from firsthand.isolation.battery.probes.processes import lock_free
from firsthand.isolation.battery.traces import sweep, usual_places
from firsthand.isolation.interface import Availability, Backend, IsolationError, Unavailable
from firsthand.records import BackendIdentity, BatteryReport, ProbeResult

IDENTITY = BackendIdentity(
    name="any", distribution="tests", version="0", level="os-sandbox", profile_digest="ab" * 32, launcher=None
)
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="what a battery leaves is looked for on Linux")


def traces() -> set[str]:
    return {
        os.path.join(place, name)
        for place in usual_places()
        if os.access(place, os.R_OK)
        for name in os.listdir(place)
        if name.startswith(f".firsthand-battery-{os.getpid()}-")
    }


class Absent:
    name = "absent"

    def availability(self) -> Availability:
        return Unavailable("not here", "go there")

    def enclose(self, *_: Any) -> Any:
        raise AssertionError("an unavailable backend is never entered")


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_each_platform_has_its_list(platform: str) -> None:
    probes = platform_probes(platform)
    assert len(probes) >= 24
    assert len({probe.id for probe in probes}) == len(probes)
    attempts = [attempt.id for probe in probes for attempt in probe.attempts]
    assert len(set(attempts)) == len(attempts)
    assert sum(probe.weights[platform] == "must" for probe in probes) >= 20


def test_other_platforms_have_none_and_so_no_pass() -> None:
    assert platform_probes("win32") == ()
    assert not verdict(())


def test_a_pass_needs_every_required_probe_and_at_least_one() -> None:
    def required(outcome: Any) -> ProbeResult:
        return ProbeResult(id="x", required=True, result=outcome, observed="", control="")

    def shown(outcome: Any) -> ProbeResult:
        return ProbeResult(id="x", required=False, result=outcome, observed="", control="")

    assert verdict([required("passed"), shown("failed")])
    assert not verdict([shown("passed")])
    for outcome in ("failed", "not-run", "no-control"):
        assert not verdict([required("passed"), required(outcome)])


def test_an_unavailable_backend_answers_nothing(tmp_path: Path) -> None:
    report = run_battery(Absent(), IDENTITY, tmp_path)
    assert not report.passed
    assert {probe.result for probe in report.probes} <= {"not-run"}
    assert all("not here" in probe.observed for probe in report.probes)


def test_an_unknown_probe_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no-such-probe"):
        run_battery(Absent(), IDENTITY, tmp_path, only=["no-such-probe"])


def test_the_digest_binds_every_file_of_the_battery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = battery_digest()
    assert before == battery_digest()
    folder = Path(catalogue_module.__file__).parent
    for path in folder.rglob("*.py"):
        target = tmp_path / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    monkeypatch.setattr(catalogue_module, "__file__", str(tmp_path / "catalogue.py"))
    assert battery_digest() == before
    for path in sorted(tmp_path.rglob("*.py")):
        honest = path.read_bytes()
        path.write_bytes(honest + b"#")
        assert battery_digest() != before
        path.write_bytes(honest)


def test_a_part_of_the_battery_is_no_pass(sound: Backend, examine: Callable[..., BatteryReport]) -> None:
    report = examine(sound, only=["starts", "tcp-ipv4"])
    results = {probe.id: probe.result for probe in report.probes}
    assert (results["starts"], results["tcp-ipv4"], results["udp"]) == ("passed", "passed", "not-run")
    assert [probe.id for probe in report.probes] == [probe.id for probe in platform_probes()]
    assert not report.passed


@needs_linux
def test_progress_is_told_in_order_and_nothing_is_left(sound: Backend, tmp_path: Path) -> None:
    environment = dict(os.environ)
    descriptors = set(os.listdir("/proc/self/fd"))
    told: list[ProbeResult] = []
    asked = [probe.id for probe in platform_probes() if probe.attempts]
    report = run_battery(sound, IDENTITY, tmp_path, only=asked, progress=told.append)
    assert [probe.id for probe in told] == asked
    assert told == [probe for probe in report.probes if probe.id in asked]
    assert dict(os.environ) == environment
    assert set(os.listdir("/proc/self/fd")) == descriptors
    assert list(tmp_path.iterdir()) == []
    assert traces() == set()


def test_a_stage_that_cannot_be_set_says_nothing_about_the_backend(
    sound: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stage_module, "Listeners", full)
    with pytest.raises(IsolationError, match="stage") as caught:
        run_battery(sound, IDENTITY, tmp_path)
    assert "No space left" in caught.value.message
    assert list(tmp_path.iterdir()) == []
    assert "FIRSTHAND_BATTERY_CANARY" not in os.environ


_KILLED = """
import sys, tempfile
from pathlib import Path
from firsthand.isolation.battery.stage import Stage
with Stage(Path(sys.argv[1])) as stage:
    print(*(holder.pid for holder in stage.holders.values()), flush=True)
    sys.stdin.read()
"""


@needs_linux
def test_a_killed_battery_leaves_no_process_and_the_rest_is_swept(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    holders = [int(pid) for pid in process.stdout.readline().split()]
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdin.close()
    process.stdout.close()
    deadline = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{pid}") and _running(pid) for pid in holders):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    removed = sweep(usual_places())
    mine = [path for path in removed if f".firsthand-battery-{process.pid}-" in path]
    assert any(path.startswith("/tmp/") for path in mine)
    assert not [path for path in mine if os.path.lexists(path)]


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


_DAEMON = """
import json, sys
from firsthand.isolation.battery.inside.limits import daemon
print(daemon(json.loads(sys.argv[1])))
"""


@needs_linux
def test_the_controls_daemon_ends_with_the_battery_that_is_killed(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    battery = subprocess.Popen(["/bin/sleep", "60"])
    order = {"lock": str(lock), "nonce": "n", "while_lives": battery.pid}
    done = subprocess.run(
        [sys.executable, "-c", _DAEMON, json.dumps(order)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "left\n"
    assert lock_free(lock) is False
    battery.kill()
    battery.wait()
    deadline = time.monotonic() + 2
    while not lock_free(lock):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_every_probe_says_what_it_asks() -> None:
    for probe in PROBES:
        assert probe.question.endswith(("?", ".)"))
        assert set(probe.weights) <= {"linux", "darwin"}


def test_the_published_list_is_the_list() -> None:
    page = Path(__file__).parents[3] / "docs" / "battery.md"
    rows = [
        [cell.strip() for cell in line.strip("|\n").split("|")]
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    assert rows == [
        [f"`{probe.id}`", probe.question, probe.weights.get("linux", ""), probe.weights.get("darwin", "")]
        for probe in PROBES
    ]
