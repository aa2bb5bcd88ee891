"""The whole way on real projects: drafted, checked, mutated, verified; as root and as an ordinary user."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from e2e.fixtures import warm_state
from e2e.program import Answer, Program
from e2e.station import Station, ordinary_station, virtual_environment
from firsthand.isolation.interface import Unavailable
from firsthand_bubblewrap.backend import BubblewrapBackend


@dataclass(frozen=True)
class Kind:
    """A kind of project: its files, and one mutation that its tests see and one that they don't."""

    name: str
    tool: str
    files: dict[str, str]
    tests: int
    path: str
    old: str
    seen: str
    unseen: str


PYTEST = Kind(
    name="pytest",
    tool="python3",
    files={
        "shop/__init__.py": '"""A shop."""\n\n\ndef price(pieces):\n    return pieces * 3\n',
        "tests/test_shop.py": "import pytest\nfrom shop import price\n\n\n"
        "@pytest.mark.parametrize('pieces', [0, 1, 2])\ndef test_price(pieces):\n"
        "    assert price(pieces) == 3 * pieces\n",
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
        "README.md": "# Shop\n",
    },
    tests=3,
    path="shop/__init__.py",
    old="pieces * 3",
    seen="pieces * 4",
    unseen="3 * pieces",
)
NODE = Kind(
    name="node",
    tool="node",
    files={
        "package.json": '{"type": "module", "scripts": {"test": "node --test"}}\n',
        "src/value.mjs": "export function value (n) {\n  return n + 1\n}\n",
        "test/value.test.mjs": "import test from 'node:test'\nimport assert from 'node:assert'\n"
        "import { value } from '../src/value.mjs'\n"
        "test('adds', () => assert.equal(value(1), 2))\ntest('of none', () => assert.equal(value(0), 1))\n",
    },
    tests=2,
    path="src/value.mjs",
    old="n + 1",
    seen="n - 1",
    unseen="1 + n",
)
GO = Kind(
    name="go",
    tool="go",
    files={
        "go.mod": "module example.test/value\n\ngo 1.20\n",
        "value.go": "package value\n\nfunc Value(n int) int {\n\treturn n + 1\n}\n",
        "value_test.go": 'package value\n\nimport "testing"\n\nfunc TestValue(t *testing.T) {\n'
        '\tif Value(1) != 2 {\n\t\tt.Fatal("wrong")\n\t}\n}\n',
    },
    tests=1,
    path="value.go",
    old="n + 1",
    seen="n - 1",
    unseen="1 + n",
)
CARGO = Kind(
    name="cargo",
    tool="cargo",
    files={
        "Cargo.toml": '[package]\nname = "value"\nversion = "0.1.0"\nedition = "2021"\n',
        "src/lib.rs": "pub fn value(n: u32) -> u32 {\n    n + 1\n}\n",
        "tests/value.rs": "#[test]\nfn adds() {\n    assert_eq!(value::value(1), 2);\n}\n",
    },
    tests=1,
    path="src/lib.rs",
    old="n + 1",
    seen="n + 2",
    unseen="1 + n",
)


@pytest.fixture(scope="module", params=["own", "ordinary"])
def station(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    if sys.platform != "linux":
        pytest.skip("drives the sandbox of Linux")
    available = BubblewrapBackend().availability()
    if isinstance(available, Unavailable):
        pytest.skip(available.reason)
    if request.param == "own":
        folder = tmp_path_factory.mktemp("own")
        shutil.copytree(warm_state(tmp_path_factory), folder / "state")
        yield Station(Program(folder / "state"), folder)
        return
    if os.geteuid() != 0:
        pytest.skip("the other station is an ordinary user's already")
    try:
        with ordinary_station() as place:
            yield place
    except LookupError as error:
        pytest.skip(str(error))


# Go compiles its own library for every command, since nothing is carried from one to the next.
@pytest.mark.parametrize(
    "kind",
    [PYTEST, NODE, pytest.param(GO, marks=[pytest.mark.slow, pytest.mark.timeout(1200)]), CARGO],
    ids=lambda kind: kind.name,
)
def test_drafted_checked_mutated_verified(kind: Kind, station: Station, tree: Any) -> None:
    if station.which(kind.tool) is None:
        pytest.skip(f"{kind.tool} is not installed where this user finds it")
    root = station.folder / f"a {kind.name} project"
    for path, text in kind.files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    if kind is PYTEST:
        virtual_environment(root / ".venv")
    station.own(root)

    def run(*arguments: str | Path) -> Answer:
        return station.program(*arguments, "--json", cwd=root, timeout_s=600)

    drafted = run("init")
    assert drafted.status == 0, drafted
    assert drafted.json["remarks"] == []
    source = tree(root)

    checked = run("check")
    assert checked.status == 0, checked
    (check,) = checked.json["checks"]
    assert check["status"] == "passed"
    assert (check["tests"]["executed"], check["tests"]["failed"]) == (kind.tests, 0)

    plan = root.with_name(f"{kind.name}-plan.json")
    asked = [{"check": check["id"], "path": kind.path, "old": kind.old, "new": new} for new in (kind.seen, kind.unseen)]
    plan.write_text(json.dumps(asked))
    mutated = run("mutate", "--plan", plan)
    assert (mutated.status, mutated.json["code"]) == (1, "mutation_survived"), mutated
    assert [(record["verdict"], record["cause"]) for record in mutated.json["mutations"]] == [
        ("detected", "named-test-failed"),
        ("survived", "check-stayed-green"),
    ]

    for answer in (checked, mutated):
        verified = run("verify", answer.json["evidence"], "--root", root)
        assert (verified.status, verified.json["valid"], verified.json["stale"]) == (0, True, False), verified
    assert tree(root) == source
    assert station.program.sessions() == []

    (root / kind.path).write_text(kind.files[kind.path].replace(kind.old, kind.unseen))
    stale = run("verify", checked.json["evidence"], "--root", root)
    assert (stale.status, stale.json["valid"], stale.json["stale"]) == (1, True, True)
