"""Power cuts: the ledger's own system calls, replayed on a disk that forgets what was not synced.

The control shows that the model bites: the same commits with one setting less are lost.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from firsthand.ledger import Ledger
from firsthand.residues import StateDirectory
from ledger.disk import Disk, replay, trace

CUTS = int(os.environ.get("FIRSTHAND_POWER_CUTS", "25"))
TESTS = str(Path(__file__).parents[1])

CLAIMER = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from firsthand.ledger import Ledger
from firsthand.residues import StateDirectory
from ledger.desk import asked
with Ledger.open(StateDirectory.open(Path(sys.argv[1]))) as ledger:
    for number in range(int(sys.argv[3])):
        claim = ledger.claim(asked(run_id=f"run-{number}"))
        os.write(1, b"ACK " + claim.nonce.encode() + b"\\n")
        ledger.dispatched(claim)
        ledger.seal(claim, evidence_digest="d" * 64, evidence_name="e.json", verdict="approved")
        ledger.end(claim, "approved", "")
"""

RAW = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1] + "/raw.sqlite", isolation_level=None)
connection.execute("PRAGMA journal_mode = DELETE")
connection.execute("PRAGMA synchronous = " + sys.argv[3])
for number in range(int(sys.argv[2])):
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO claim VALUES (?)", (number,))
    connection.execute("COMMIT")
    os.write(1, b"ACK %d\\n" % number)
"""


@pytest.fixture
def before(state: StateDirectory, tmp_path: Path) -> Path:
    """A copy of a state directory with an empty ledger, as it lies on the disk before the claims."""
    with Ledger.open(state) as ledger:
        ledger.bind("run-before", "1" * 64)
    shutil.copytree(state.path, tmp_path / "before")
    return tmp_path / "before"


def disk_of(state: StateDirectory, before: Path) -> Disk:
    disk = Disk(before)
    for mapping in (disk.names, disk.kept):
        moved = {path.replace(str(before), str(state.path), 1): node for path, node in mapping.items()}
        mapping.clear()
        mapping.update(moved)
    disk.folders = [folder.replace(str(before), str(state.path), 1) for folder in disk.folders]
    disk.root = str(state.path)
    return disk


def nonces(folder: Path) -> set[str]:
    """The claims in a ledger after a cut; opening it checks that it is sound."""
    with Ledger.open(StateDirectory.open(folder)) as ledger:
        return {one.facts.nonce for run in ledger.runs() for one in ledger.rounds(run.run_id)}


def test_no_acknowledged_claim_is_lost_in_a_power_cut(state: StateDirectory, before: Path, tmp_path: Path) -> None:
    trace(CLAIMER, str(state.path), TESTS, str(CUTS), log=tmp_path / "log")
    disk = disk_of(state, before)
    acknowledged: list[str] = []
    for said in replay(disk, tmp_path / "log"):
        if said is not None:
            acknowledged.append(said.decode())
            cut = tmp_path / f"cut-{len(acknowledged)}"
            disk.cut(cut)
            assert set(acknowledged) <= nonces(cut), f"lost in cut {len(acknowledged)}"
            shutil.rmtree(cut)
    assert len(acknowledged) == CUTS
    # The model's view without a cut is the real file: nothing that SQLite did was missed.
    for path, node in disk.names.items():
        assert Path(path).read_bytes() == bytes(node.now)


def test_a_cut_at_any_call_leaves_a_sound_ledger(state: StateDirectory, before: Path, tmp_path: Path) -> None:
    """Between the acknowledgements too, each call of a few rounds."""
    trace(CLAIMER, str(state.path), TESTS, "2", log=tmp_path / "log")
    disk = disk_of(state, before)
    acknowledged: set[str] = set()
    cuts = 0
    last: dict[str, bytes] = {}
    for said in replay(disk, tmp_path / "log"):
        if said is not None:
            acknowledged.add(said.decode())
        durable = {path: node.durable for path, node in disk.kept.items()}
        if durable == last:
            continue  # nothing that a cut would leave has changed
        last = durable
        cuts += 1
        cut = tmp_path / f"cut-{cuts}"
        disk.cut(cut)
        assert acknowledged <= nonces(cut)
        shutil.rmtree(cut)
    assert cuts > 30


def raw_losses(tmp_path: Path, synchronous: str) -> Iterator[bool]:
    """For each acknowledged commit of a bare database: whether a cut right after it loses it."""
    folder = tmp_path / "raw"
    folder.mkdir()
    connection = sqlite3.connect(folder / "raw.sqlite")
    connection.execute("CREATE TABLE claim (number INTEGER)")
    connection.close()
    disk = Disk(folder)
    trace(RAW, str(folder), str(CUTS), synchronous, log=tmp_path / "log")
    for said in replay(disk, tmp_path / "log"):
        if said is not None:
            cut = tmp_path / f"cut-{said.decode()}"
            disk.cut(cut)
            reader = sqlite3.connect(cut / "raw.sqlite")
            found = reader.execute("SELECT 1 FROM claim WHERE number = ?", (int(said),)).fetchone()
            reader.close()
            yield found is None


def test_the_control_full_loses_what_it_acknowledged(tmp_path: Path) -> None:
    assert list(raw_losses(tmp_path, "FULL")) == [True] * CUTS


def test_the_control_extra_loses_nothing(tmp_path: Path) -> None:
    assert list(raw_losses(tmp_path, "EXTRA")) == [False] * CUTS
