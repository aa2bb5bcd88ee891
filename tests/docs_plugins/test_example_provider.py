"""The documented provider is one like any other: found, inspected, loaded, and held to the core's own path."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox of these tests is Linux's")

LOADED = """
import json
from firsthand.plugins import PROVIDERS, discover, inspect_plugin, load
from firsthand.review.interface import Capability, Host, Provider
plugin = discover(PROVIDERS).find("checklist")
provider = load(plugin, timeout_s=60)
print(json.dumps({
    "owner": plugin.owner,
    "problem": str(inspect_plugin(plugin, timeout_s=60).problem),
    "is provider": isinstance(provider, Provider),
    "capable": isinstance(provider.capability(Host(environment={}, home=None)), Capability),
}))
"""

REVIEWED = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from checks.yard import Yard
from firsthand.plugins import PROVIDERS, discover, load
from firsthand.records import Budget
from firsthand.residues import Session, StateDirectory
from firsthand.review.interface import Host, PluginIdentity
from firsthand.review.launching import PlainLauncher
from firsthand.review.preflight import Rehearsal, run_preflight
from firsthand.review.session import Bench, Round, review_round
from checks.yard import Kept
plugin = discover(PROVIDERS).find("checklist")
provider = load(plugin, timeout_s=60)
identity = PluginIdentity(name=plugin.name, distribution=plugin.distribution, version=plugin.version)
files = {"value.py": "x = 1\\n", "big.txt": "a" * 40000}
command = ["/bin/sh", "-c", "exit " + sys.argv[2]]
yard = Yard(Path("yard").absolute(), files, command, runner="exit")
calls = []
kept = Kept()
kept.tool_call = calls.append
host = Host(environment={}, home=None)
with Session.open(StateDirectory.open(Path("state").absolute())) as session:
    def launcher(private, deadline):
        return PlainLauncher(session, private, deadline)
    rehearsal = Rehearsal(identity, "tools", "none", "", Budget(timeout_ms=60000, max_turns=9), host,
                          session.tree("preflight"), session.tree("door"))
    diagnosis = run_preflight(provider, rehearsal, launcher)
    round_ = Round(yard.definition.document, yard.snapshot, "final", 1, "3" * 64, diagnosis, identity, host, None,
                   session.tree("run"), session.tree("door"))
    reviewed = review_round(provider, round_, Bench(yard.ground, yard.registered), launcher, kept)
print(json.dumps({
    "code": reviewed.code,
    "failure": str(reviewed.failure),
    "verdict": reviewed.dispatch.judgement and reviewed.dispatch.judgement.verdict,
    "tools": diagnosis.tools,
    "calls": [call.tool for call in calls],
    "unread": reviewed.dispatch.unread,
}))
"""


def answer_of(done: subprocess.CompletedProcess[str]) -> Any:
    if "Skipped" in done.stderr:
        pytest.skip(done.stderr[-200:])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_is_found_inspected_and_loaded(in_venv: Any) -> None:
    answer = answer_of(in_venv(LOADED))
    assert answer == {"owner": "firsthand-checklist 1.0", "problem": "None", "is provider": True, "capable": True}


@pytest.mark.parametrize(("status", "verdict"), [("0", "blocked"), ("1", "rejected")])
def test_it_reviews_by_the_cores_own_path(in_venv: Any, status: str, verdict: str) -> None:
    answer = answer_of(in_venv(REVIEWED, str(TESTS), status))
    assert answer["failure"] == "None"
    assert (answer["code"], answer["verdict"]) == ("", verdict)
    assert answer["tools"] == ["mutate_check", "read_file", "run_check"]
    assert answer["calls"] == ["read_file"] * 4 + ["run_check"]
    assert answer["unread"] == []


def test_it_passes_the_contract_tests_of_providers(venv_python: Path) -> None:
    contract = TESTS / "contract" / "test_providers.py"
    done = subprocess.run(
        [str(venv_python), "-m", "pytest", "-q", "-rs", "-k", "checklist", "-p", "no:cacheprovider", str(contract)],
        capture_output=True,
        text=True,
        check=False,
        cwd=TESTS.parent,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    assert "brought no rig" not in done.stdout, done.stdout
