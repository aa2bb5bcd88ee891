"""An old copy, a changed row, a changed entry: what is noticed, and what is not."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from firsthand.ledger import Ledger, LedgerError
from firsthand.ledger.chain import GENESIS, link
from firsthand.ledger.place import LedgerPlace
from firsthand.residues import StateDirectory
from ledger.desk import asked, judged


@pytest.fixture
def used(state: StateDirectory) -> LedgerPlace:
    with Ledger.open(state) as ledger:
        judged(ledger, ledger.claim(asked()), "rejected", "review_rejected")
    return LedgerPlace.of(state)


def write(place: LedgerPlace, statement: str, *values: object) -> None:
    connection = sqlite3.connect(place.file, isolation_level=None)
    connection.execute("DROP TRIGGER entry_stays")
    connection.execute("DROP TRIGGER entry_remains")
    assert connection.execute(statement, values).rowcount >= 1
    connection.close()


def refused(state: StateDirectory, match: str) -> None:
    with pytest.raises(LedgerError, match=match):
        Ledger.open(state)


def test_an_old_copy_put_back_is_noticed(state: StateDirectory, used: LedgerPlace, tmp_path: Path) -> None:
    shutil.copy2(used.file, tmp_path / "old")
    with Ledger.open(state) as ledger:
        ledger.bind("run-2", "2" * 64)
    shutil.copy2(tmp_path / "old", used.file)
    refused(state, "not the latest")


def test_an_old_copy_that_grew_again_is_noticed(state: StateDirectory, used: LedgerPlace, tmp_path: Path) -> None:
    shutil.copy2(used.file, tmp_path / "old")
    with Ledger.open(state) as ledger:
        ledger.bind("run-2", "2" * 64)
    shutil.copy2(tmp_path / "old", used.file)
    used.head.rename(tmp_path / "head")
    with Ledger.open(state) as ledger:
        ledger.bind("run-3", "3" * 64)
    (tmp_path / "head").replace(used.head)
    refused(state, "not the latest")


def test_a_ledger_that_is_gone_is_not_begun_anew(state: StateDirectory, used: LedgerPlace) -> None:
    used.file.unlink()
    refused(state, "gone")
    used.file.write_bytes(b"")
    used.file.chmod(0o600)
    refused(state, "gone")


def test_an_empty_file_that_a_crash_left_is_begun(state: StateDirectory) -> None:
    place = LedgerPlace.of(state)
    place.file.write_bytes(b"")
    place.file.chmod(0o600)
    with Ledger.open(state) as ledger:
        ledger.bind("run-1", "1" * 64)


@pytest.mark.parametrize("raw", [b"", b"{}", b"[]", b'{"digest":1,"seq":1}', b'{"digest":"x","seq":"1"}', b"\xff"])
def test_a_head_that_can_not_be_read_stops_and_is_kept(state: StateDirectory, used: LedgerPlace, raw: bytes) -> None:
    used.head.write_bytes(raw)
    refused(state, "head can't be read")
    assert used.head.read_bytes() == raw


def test_a_head_that_lags_behind_is_accepted_and_caught_up(
    state: StateDirectory, used: LedgerPlace, tmp_path: Path
) -> None:
    """A kill between the commit and the head leaves it so."""
    shutil.copy2(used.head, tmp_path / "lagging")
    with Ledger.open(state) as ledger:
        ledger.bind("run-2", "2" * 64)
    newest = used.head.read_bytes()
    shutil.copy2(tmp_path / "lagging", used.head)
    with Ledger.open(state) as ledger:
        ledger.bind("run-3", "3" * 64)
    assert used.head.read_bytes() not in {newest, (tmp_path / "lagging").read_bytes()}


def test_a_changed_entry_is_noticed(state: StateDirectory, used: LedgerPlace) -> None:
    write(used, "UPDATE entry SET body = replace(body, 'rejected', 'approved') WHERE kind = 'ended'")
    refused(state, "another hand")


@pytest.mark.parametrize("kind", ["bound", "claimed", "ended"])
def test_a_missing_entry_is_noticed(state: StateDirectory, used: LedgerPlace, kind: str) -> None:
    write(used, "DELETE FROM entry WHERE kind = ?", kind)
    refused(state, "another hand|not the latest")


def test_a_changed_row_is_noticed(state: StateDirectory, used: LedgerPlace) -> None:
    write(used, "UPDATE round SET state = 'approved', verdict = 'approved', code = ''")
    with Ledger.open(state) as ledger, pytest.raises(LedgerError, match="another hand"):
        ledger.rounds("run-1")


def test_a_missing_row_is_noticed(state: StateDirectory, used: LedgerPlace) -> None:
    write(used, "DELETE FROM round")
    with Ledger.open(state) as ledger, pytest.raises(LedgerError, match="another hand"):
        ledger.rounds("run-1")


def test_entries_can_not_be_changed_by_a_slip(used: LedgerPlace) -> None:
    connection = sqlite3.connect(used.file)
    for statement in ("UPDATE entry SET kind = 'x'", "DELETE FROM entry"):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
    connection.close()


def test_the_chain_can_be_recomputed_by_anybody(used: LedgerPlace) -> None:
    connection = sqlite3.connect(used.file)
    previous = GENESIS
    for seq, run_id, kind, body, head in connection.execute("SELECT * FROM entry ORDER BY seq"):
        previous = link(previous, seq, run_id, kind, body)
        assert previous == head
    connection.close()


def test_the_limit_all_files_put_back_together_are_not_noticed(
    state: StateDirectory, used: LedgerPlace, tmp_path: Path
) -> None:
    """Said in docs/ledger.md: a guard against slips, not against somebody with the same rights on the files."""
    shutil.copy2(used.file, tmp_path / "old")
    shutil.copy2(used.head, tmp_path / "old-head")
    with Ledger.open(state) as ledger:
        ledger.bind("run-2", "2" * 64)
        newest = ledger.latest()
    shutil.copy2(tmp_path / "old", used.file)
    shutil.copy2(tmp_path / "old-head", used.head)
    with Ledger.open(state) as ledger:
        assert ledger.latest().seq < newest.seq
