"""Upgrades after a backup by the database's own means, and backups while others write."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest

from firsthand.ledger import Ledger, LedgerError
from firsthand.ledger.database import Database
from firsthand.ledger.place import LedgerPlace
from firsthand.ledger.schema import MIGRATIONS
from firsthand.residues import StateDirectory
from ledger.desk import asked, judged

NEXT = (*MIGRATIONS, ("CREATE TABLE more (x TEXT NOT NULL) STRICT", "INSERT INTO more VALUES ('upgraded')"))
BROKEN = (*MIGRATIONS, ("CREATE TABLE more (x TEXT NOT NULL) STRICT", "CREATE TABLE run (x)"))


@pytest.fixture
def old(state: StateDirectory) -> LedgerPlace:
    with Ledger.open(state) as ledger:
        judged(ledger, ledger.claim(asked()), "approved")
    return LedgerPlace.of(state)


def test_an_older_version_is_backed_up_and_upgraded(old: LedgerPlace) -> None:
    Database.open(old, migrations=NEXT).close()
    (backup,) = old.folder.glob("ledger-version-1-*.sqlite")
    assert backup.stat().st_mode & 0o777 == 0o600
    for file, version in ((backup, 1), (old.file, 2)):
        connection = sqlite3.connect(file)
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)
        assert connection.execute("SELECT state FROM round").fetchall() == [("approved",)]
        connection.close()
    Database.open(old, migrations=NEXT).close()
    assert len(list(old.folder.glob("*.sqlite"))) == 2


def test_an_upgrade_that_fails_changes_nothing(old: LedgerPlace) -> None:
    before = old.file.read_bytes()
    with pytest.raises(LedgerError):
        Database.open(old, migrations=BROKEN)
    assert old.file.read_bytes() == before


def test_several_upgrades_at_once_are_one(old: LedgerPlace) -> None:
    failures: list[BaseException] = []

    def upgrade() -> None:
        try:
            Database.open(old, migrations=NEXT).close()
        except BaseException as error:  # noqa: BLE001 - told below
            failures.append(error)

    threads = [threading.Thread(target=upgrade) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    connection = sqlite3.connect(old.file)
    assert connection.execute("SELECT x FROM more").fetchall() == [("upgraded",)]
    assert connection.execute("SELECT count(*) FROM entry WHERE kind = 'upgraded'").fetchone() == (1,)
    connection.close()


def test_a_backup_is_whole_while_others_write(state: StateDirectory, tmp_path: Path) -> None:
    stop = threading.Event()
    written: list[int] = []

    def work() -> None:
        with Ledger.open(state) as writer:
            while not stop.is_set():
                writer.bind(f"run-{len(written)}", "1" * 64)
                written.append(1)

    with Ledger.open(state) as ledger:
        thread = threading.Thread(target=work)
        thread.start()
        try:
            for number in range(5):
                acknowledged = len(written)
                ledger.backup(tmp_path / f"{number}.sqlite")
                connection = sqlite3.connect(tmp_path / f"{number}.sqlite")
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                assert connection.execute("SELECT count(*) FROM run").fetchone()[0] >= acknowledged
                connection.close()
        finally:
            stop.set()
            thread.join()


def test_a_backup_overwrites_nothing(ledger: Ledger, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "new")
    for target in (taken, tmp_path / "link", tmp_path / "absent" / "file"):
        with pytest.raises(LedgerError, match="can't be made"):
            ledger.backup(target)
    assert taken.read_text() == "mine"
    assert not (tmp_path / "new").exists()


def test_a_backup_restored_where_all_was_lost_is_used(state: StateDirectory, ledger: Ledger, tmp_path: Path) -> None:
    judged(ledger, ledger.claim(asked()), "approved")
    ledger.backup(tmp_path / "backup.sqlite")
    fresh = StateDirectory.open(tmp_path / "fresh")
    (tmp_path / "backup.sqlite").rename(LedgerPlace.of(fresh).file)
    with Ledger.open(fresh) as restored:
        assert restored.latest() == ledger.latest()
        assert restored.rounds("run-1") == ledger.rounds("run-1")
