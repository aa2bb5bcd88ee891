"""The documented example is a backend like any other: found, inspected, loaded, and examined by the whole battery."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from firsthand.plugins import BACKENDS, discover
from firsthand.residues import StateDirectory, list_residues, sweep

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the example confines on Linux")


def answer_of(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


LOADED = """
import json
from firsthand.plugins import BACKENDS, discover, inspect_plugin, load
from firsthand.isolation.interface import Backend
plugin = discover(BACKENDS).find("plainbox")
backend = load(plugin, timeout_s=60)
print(json.dumps({
    "owner": plugin.owner,
    "problem": str(inspect_plugin(plugin, timeout_s=60).problem),
    "is backend": isinstance(backend, Backend),
    "others": [other.name for other in discover(BACKENDS).plugins],
}))
"""


def test_it_is_found_in_its_environment_and_nowhere_else(in_venv: Any) -> None:
    answer = answer_of(in_venv(LOADED))
    assert answer["owner"] == "firsthand-plainbox 1.0"
    assert answer["problem"] == "None"
    assert answer["is backend"] is True
    assert {"plainbox", "unavailable"} <= set(answer["others"])
    assert "plainbox" not in [plugin.name for plugin in discover(BACKENDS).plugins]


EXAMINED = """
import json, sys
from pathlib import Path
from firsthand.isolation.battery import run_battery
from firsthand.isolation.interface import Available
from firsthand.plugins import BACKENDS, discover, load
from firsthand.records import BackendIdentity
plugin = discover(BACKENDS).find("plainbox")
backend = load(plugin, timeout_s=60)
available = backend.availability()
if not isinstance(available, Available):
    print(json.dumps({"unavailable": available.reason}))
    sys.exit()
identity = BackendIdentity(
    name=plugin.name, distribution=plugin.distribution, version=plugin.version, level="os-sandbox",
    profile_digest=available.profile_digest, launcher=available.launcher,
)
report = run_battery(backend, identity, Path(sys.argv[1]))
print(json.dumps(report.as_json()))
"""


def test_it_passes_the_whole_battery(in_venv: Any, tmp_path: Path) -> None:
    workplace = tmp_path / "workplace"
    workplace.mkdir(mode=0o700)
    report = answer_of(in_venv(EXAMINED, str(workplace)))
    if "unavailable" in report:
        pytest.skip(report["unavailable"])
    bad = {probe["id"]: probe["observed"] for probe in report["probes"] if probe["required"] and not passed(probe)}
    assert bad == {}
    assert report["passed"] is True
    assert report["backend"]["distribution"] == "firsthand-plainbox"
    # Enough of them to mean something, whatever this machine leaves without a control.
    assert sum(map(passed, report["probes"])) >= 40
    assert list(workplace.iterdir()) == []


def passed(probe: dict[str, Any]) -> bool:
    return bool(probe["result"] == "passed")


ENCLOSED = """
import json, sys
from pathlib import Path
from firsthand.isolation.interface import Available, Limits, Request, Workspace
from firsthand.plugins import BACKENDS, discover, load
from firsthand.residues import Session, StateDirectory
backend = load(discover(BACKENDS).find("plainbox"), timeout_s=60)
if not isinstance(backend.availability(), Available):
    print("unavailable", flush=True)
    sys.exit()
session = Session.open(StateDirectory.open(Path(sys.argv[1])))
copy, private = session.tree("copy"), session.tree("private")
workspace = Workspace(copy=copy, shown_at=Path("/source"), private=private, token=session.token)
with backend.enclose(workspace, Limits(), session) as enclosure:
    command = "setsid sleep 600 & setsid sleep 600 & : > started; sleep 600"
    print(session.token, copy, flush=True)
    enclosure.run(Request(("sh", "-c", command), "/usr/bin/sh", timeout_s=600))
"""


def test_a_killed_host_takes_its_sandbox_with_it(venv_python: Path, tmp_path: Path) -> None:
    state = StateDirectory.open(tmp_path / "state")
    host = subprocess.Popen(
        [str(venv_python), "-c", ENCLOSED, str(state.path)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert host.stdout is not None
    first = host.stdout.readline().split()
    if first == ["unavailable"]:
        host.wait()
        pytest.skip("no sandbox here")
    token, copy = first
    deadline = time.monotonic() + 60
    while not (Path(copy) / "started").exists():
        assert time.monotonic() < deadline
        assert host.poll() is None
    assert carrying(token)
    host.kill()
    killed = time.monotonic()
    host.wait()
    host.stdout.close()
    while carrying(token):
        assert time.monotonic() - killed < 2
    assert "tree" in {residue.kind for residue in list_residues(state)}
    assert {residue.state for residue in sweep(state, clean_kept=False)} <= {"removed", "ended"}
    assert os.listdir(state.sessions) == []


def carrying(token: str) -> list[str]:
    """Living processes with the token among their arguments."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if token.encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                found.append(name)
        except OSError:
            continue
    return found
