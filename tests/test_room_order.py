"""The rooms of the core import one way, and import at all where POSIX is not."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import firsthand

HOUSE = Path(firsthand.__file__).parent

WAY = (
    "errors",
    "canonical",
    "records",
    "rules",
    "files",
    "residues",
    "definition",
    "snapshot",
    "isolation",
    "checks",
    "mutation",
    "review",
)
"""The way of the data, bottom up: each room imports only from rooms before it."""

GROUND = frozenset({"errors", "canonical", "records", "rules", "files", "definition"})

BESIDE = {
    "evidence": GROUND,
    "ledger": GROUND | {"residues"},
    "report": GROUND | {"evidence"},
    "plugins": frozenset({"errors", "records"}),
}
"""Rooms beside the way, each with all that it may import."""

ON_TOP = ("engine", "cli")
"""Engine composes all rooms, cli comes last."""


def allowed(room: str) -> frozenset[str]:
    """The rooms that a room may import beside itself."""
    if room in WAY:
        return frozenset(WAY[: WAY.index(room)])
    if room in BESIDE:
        return BESIDE[room]
    return frozenset((*WAY, *BESIDE, *ON_TOP[: ON_TOP.index(room)]))


def sources() -> Iterator[tuple[str, str, Path]]:
    """Room, dotted module name and file of every module of the core, its root aside.

    Python files in a folder that is no package are data, such as a sample project.
    """
    for path in sorted(HOUSE.rglob("*.py")):
        above = path.relative_to(HOUSE).parents
        if not all((HOUSE / folder / "__init__.py").exists() for folder in above):
            continue
        parts = path.relative_to(HOUSE).with_suffix("").parts
        if parts == ("__init__",):
            continue
        names = parts[:-1] if parts[-1] == "__init__" else parts
        yield parts[0], ".".join(("firsthand", *names)), path


def imported_rooms(source: str, module: str, *, is_package: bool = False) -> set[str]:
    """The rooms that a module's text imports, at its top, in functions and for types alike."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join((*above, *([node.module] if node.module else [])))
            names = [f"{base}.{alias.name}" for alias in node.names] if base == "firsthand" else [base]
        for name in names:
            parts = name.split(".")
            # `from firsthand import __version__` reaches no room.
            if parts[0] == "firsthand" and len(parts) > 1 and not parts[1].startswith("__"):
                rooms.add(parts[1])
    return rooms


def violations(room: str, module: str, source: str, *, is_package: bool = False) -> set[str]:
    return imported_rooms(source, module, is_package=is_package) - allowed(room) - {room}


def test_every_room_has_its_place() -> None:
    assert {room for room, _, _ in sources()} <= {*WAY, *BESIDE, *ON_TOP}


@pytest.mark.parametrize(("room", "module", "path"), [pytest.param(*found, id=found[1]) for found in sources()])
def test_each_module_imports_only_from_rooms_before_its_own(room: str, module: str, path: Path) -> None:
    assert violations(room, module, path.read_text("utf-8"), is_package=path.name == "__init__.py") == set()


@pytest.mark.parametrize(
    ("room", "source", "found"),
    [
        ("files", "from firsthand.snapshot import freeze", {"snapshot"}),
        ("files", "import firsthand.snapshot.drift", {"snapshot"}),
        ("files", "from firsthand import snapshot", {"snapshot"}),
        ("files", "from ..snapshot import freeze", {"snapshot"}),
        ("files", "from .. import snapshot", {"snapshot"}),
        ("files", "def f():\n    from firsthand.cli import main", {"cli"}),
        ("files", "if TYPE_CHECKING:\n    from firsthand.engine import session", {"engine"}),
        ("evidence", "import firsthand.isolation", {"isolation"}),
        ("evidence", "import firsthand.ledger", {"ledger"}),
        ("plugins", "from firsthand.canonical import sha256_hex", {"canonical"}),
        ("engine", "import firsthand.cli", {"cli"}),
        ("files", "import firsthand.rumpus", {"rumpus"}),
        (
            "snapshot",
            "from firsthand import __version__\nfrom firsthand.files import Cursor\nfrom . import drift",
            set(),
        ),
        ("files", "# import firsthand.cli\ntext = 'import firsthand.cli'", set()),
        ("report", "import firsthand.evidence", set()),
    ],
)
def test_a_violation_is_caught(room: str, source: str, found: set[str]) -> None:
    assert violations(room, f"firsthand.{room}.module", source) == found


POSIX_ONLY = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty", "syslog")

WITHOUT_POSIX = """
import importlib, importlib.abc, os, sys

# The SDK goes by sys.platform, which says Linux here; on Windows it imports none of these.
import mcp.server.lowlevel

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

BLOCKED = frozenset(sys.argv[1].split(","))
for name in BLOCKED:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Absent())
# What Windows' os module lacks and a module might touch while it is imported.
for name in ("O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_PATH", "geteuid", "getuid",
             "fchmod", "fork", "memfd_create", "pidfd_open", "sched_getaffinity"):
    if hasattr(os, name):
        delattr(os, name)
for module in sys.argv[2].split(","):
    importlib.import_module(module)
print("imported")
"""


def without_posix(*modules: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX, ",".join(POSIX_ONLY), ",".join(modules)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_every_module_imports_where_posix_is_not() -> None:
    modules = [module for _, module, _ in sources() if not module.endswith("__main__")]
    ended = without_posix(*modules)
    assert (ended.stdout.strip(), ended.returncode) == ("imported", 0), ended.stderr


def test_a_posix_import_at_the_top_is_caught() -> None:
    assert "No module named 'fcntl'" in without_posix("fcntl").stderr
