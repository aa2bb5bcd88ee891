"""Where a ledger is refused: each case first shown to be accepted without the fault."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from firsthand.errors import StateError
from firsthand.ledger import ClaimRefusedError, Ledger, LedgerError, filesystem
from firsthand.ledger.place import LedgerPlace
from firsthand.ledger.schema import APPLICATION_ID
from firsthand.residues import StateDirectory
from ledger.desk import asked, judged

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX")


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name} here")
    return found


@pytest.fixture
def used(state: StateDirectory) -> Path:
    """The file of a ledger with one approved round."""
    with Ledger.open(state) as ledger:
        judged(ledger, ledger.claim(asked()), "approved")
    return LedgerPlace.of(state).file


def refused(state: StateDirectory, match: str) -> LedgerError:
    with pytest.raises(LedgerError, match=match) as caught:
        Ledger.open(state)
    assert caught.value.code == "state_invalid"
    assert caught.value.exit_status == 2
    assert caught.value.where
    assert caught.value.next_step
    return caught.value


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_every_file_is_private_from_its_first_byte(state: StateDirectory, umask: int) -> None:
    seen: dict[str, set[int]] = {}

    def watch() -> None:
        for path in (*state.ledger.iterdir(), *state.path.glob("ledger-head*")):
            seen.setdefault(path.name, set()).add(path.stat().st_mode & 0o777)

    before = os.umask(umask)
    try:
        with Ledger.open(state) as ledger:
            with ledger._database.writing() as connection:
                connection.execute("INSERT INTO run (run_id, fingerprint) VALUES ('r', ?)", ("f" * 64,))
                watch()
            judged(ledger, ledger.claim(asked()), "approved")
            ledger.backup(state.ledger / "copy.sqlite")
            watch()
    finally:
        os.umask(before)
    assert set(seen) == {"ledger.sqlite", "ledger.sqlite-journal", "copy.sqlite", "ledger-head"}
    assert set.union(*seen.values()) == {0o600}
    assert state.ledger.stat().st_mode & 0o777 == 0o700


def test_the_settings_that_durability_rests_on(ledger: Ledger) -> None:
    with ledger._database.reading() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        tables = connection.execute("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'").fetchall()
    assert {name: strict for name, strict in tables if not name.startswith("sqlite_")} == {
        "run": 1,
        "round": 1,
        "entry": 1,
    }


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o400, 0o700])
def test_any_other_mode(state: StateDirectory, used: Path, mode: int) -> None:
    used.chmod(mode)
    assert "chmod 600" in refused(state, f"mode {mode:04o}").next_step


def test_a_link(state: StateDirectory, used: Path, tmp_path: Path) -> None:
    used.rename(tmp_path / "elsewhere")
    used.symlink_to(tmp_path / "elsewhere")
    refused(state, "symbolic link")


def test_a_dangling_link_is_not_followed(state: StateDirectory, tmp_path: Path) -> None:
    LedgerPlace.of(state).file.symlink_to(tmp_path / "new")
    refused(state, "symbolic link")
    assert not (tmp_path / "new").exists()


def test_a_second_name(state: StateDirectory, used: Path, tmp_path: Path) -> None:
    os.link(used, tmp_path / "second")
    refused(state, "2 names")


def test_a_pipe_is_not_opened(state: StateDirectory) -> None:
    os.mkfifo(LedgerPlace.of(state).file, 0o600)
    refused(state, "no regular file")


def test_another_owner(state: StateDirectory, used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.stat(used).st_uid + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    refused(state, "belongs to uid")


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_foreign_write_ahead_log(state: StateDirectory, used: Path, suffix: str) -> None:
    used.with_name(used.name + suffix).write_bytes(b"")
    refused(state, "write-ahead log")


def test_a_foreign_write_ahead_log_would_have_been_read_in(tmp_path: Path) -> None:
    """The control: SQLite itself takes a log that lies there for its own."""
    here, there = tmp_path / "here.sqlite", tmp_path / "there.sqlite"
    connection = sqlite3.connect(here, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (x)")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(here, there)
    connection.execute("INSERT INTO t VALUES ('foreign')")
    shutil.copy(here.with_name("here.sqlite-wal"), there.with_name("there.sqlite-wal"))
    connection.close()
    reader = sqlite3.connect(there)
    assert reader.execute("SELECT x FROM t").fetchall() == [("foreign",)]
    reader.close()


def test_a_journal_of_another_kind(state: StateDirectory, used: Path, tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"")
    used.with_name(used.name + "-journal").symlink_to(tmp_path / "target")
    refused(state, "symbolic link")


@pytest.mark.parametrize("magic", sorted(filesystem.NETWORK_MAGICS))
def test_a_network_file_system(state: StateDirectory, magic: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform != "linux":
        pytest.skip("the numbers are those of Linux")
    answer = magic.to_bytes(8, sys.byteorder) + bytes(112)
    monkeypatch.setattr(filesystem, "_statfs", lambda path, symbol: answer)
    refused(state, "network file system")
    assert not LedgerPlace.of(state).file.exists()


def test_network_file_systems_of_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(name: bytes, flags: int) -> bytes:
        return bytes(64) + flags.to_bytes(4, sys.byteorder) + bytes(4) + name.ljust(16, b"\0")

    for name, flags, expected in ((b"apfs", 0x1000, None), (b"smbfs", 0, "smbfs"), (b"nfs", 0x1000, "nfs")):
        raw = answer(name, flags)
        monkeypatch.setattr(filesystem, "_statfs", lambda path, symbol, raw=raw: raw)
        assert filesystem._name_on_macos(Path("/")) == expected


def test_the_file_system_of_this_test_is_asked_for_real(tmp_path: Path) -> None:
    if sys.platform == "linux":
        assert filesystem._magic(tmp_path) == int(
            subprocess.run([tool("stat"), "-f", "-c", "%t", tmp_path], capture_output=True, check=True).stdout, 16
        )
        assert filesystem._magic(Path("/proc")) == 0x9FA0
        assert filesystem._magic(Path("/absent")) == 0


@pytest.mark.parametrize("inside", ["", "state", "a/b/state"])
def test_a_state_directory_inside_the_source(tmp_path: Path, inside: str) -> None:
    source = tmp_path / "source"
    source.mkdir()
    with pytest.raises(StateError, match="inside the source"):
        StateDirectory.open(source / inside, source=source)
    assert list(source.iterdir()) == []


def damage_header(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    raw[:16] = b"no database here"
    file.write_bytes(raw)


def damage_page(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    for start in range(4096, len(raw), 4096):
        raw[start : start + 200] = b"\xff" * 200
    file.write_bytes(raw)


def truncate(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2 + 17)


@pytest.mark.parametrize("damage", [damage_header, damage_page, truncate])
def test_a_malformed_ledger_stops_and_is_kept(
    state: StateDirectory, used: Path, damage: Callable[[Path], None]
) -> None:
    damage(used)
    raw = used.read_bytes()
    assert "kept" in refused(state, "malformed").next_step
    assert used.read_bytes() == raw
    assert sorted(path.name for path in state.ledger.iterdir()) == [used.name]


def test_another_programs_database(state: StateDirectory) -> None:
    file = LedgerPlace.of(state).file
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE t (x)")
    connection.close()
    file.chmod(0o600)
    refused(state, "no ledger")


def test_a_newer_version(state: StateDirectory, used: Path) -> None:
    connection = sqlite3.connect(used)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    raw = used.read_bytes()
    assert "newer" in refused(state, "version 2").next_step
    assert used.read_bytes() == raw


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[None]:
    if os.geteuid() != 0 or sys.platform != "linux":
        pytest.skip("mounts something, which takes root")
    done = subprocess.run([tool("mount"), *options, str(folder)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"can't mount here: {done.stderr}")
    try:
        yield
    finally:
        subprocess.run([tool("umount"), str(folder)], check=True)


def test_a_read_only_file_system(state: StateDirectory, used: Path) -> None:
    with mounted(state.path, "--bind", str(state.path)):
        subprocess.run([tool("mount"), "-o", "remount,bind,ro", str(state.path)], check=True)
        with Ledger.open(state) as ledger, pytest.raises(LedgerError, match="can't be written"):
            ledger.claim(asked(stage="root-cause"))
    with Ledger.open(state) as ledger:
        assert len(ledger.rounds("run-1")) == 1


def fill_up(ledger: Ledger, state: StateDirectory) -> int:
    """Claim rounds of ever new runs until it is refused; how many were claimed."""
    for number in range(100_000):
        try:
            claim = ledger.claim(asked(run_id=f"r-{number}", tests={f"tests/{n}": "e" * 64 for n in range(200)}))
        except LedgerError as error:
            assert "full" in error.message or "can't be used" in error.message  # noqa: PT017
            return number
        assert claim.round == 1
    raise AssertionError("the disk never filled up")


def test_a_full_disk_claims_nothing_and_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    with mounted(folder, "-t", "tmpfs", "-o", "size=1m", "tmpfs"):
        state = StateDirectory.open(folder / "state")
        with Ledger.open(state) as ledger:
            claimed = fill_up(ledger, state)
            assert claimed > 5
        (state.path / "ledger-head").unlink(missing_ok=True)  # frees a page for the journal
        with Ledger.open(state) as ledger:
            assert len(ledger.runs()) == claimed
            assert [len(ledger.rounds(run.run_id)) for run in ledger.runs()] == [1] * claimed


FILLER = """
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from firsthand.ledger import Ledger, LedgerError
from firsthand.residues import StateDirectory
from ledger.desk import asked
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
with Ledger.open(StateDirectory.open(Path(sys.argv[1]))) as ledger:
    for number in range(100_000):
        try:
            ledger.claim(asked(run_id=f"r-{number}", tests={f"tests/{n}": "e" * 64 for n in range(200)}))
        except LedgerError as error:
            print(number, error.message)
            break
"""


def test_a_file_that_may_not_grow_claims_nothing_and_loses_nothing(state: StateDirectory) -> None:
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", FILLER, str(state.path), str(tests)], capture_output=True, text=True, check=True
    )
    claimed, message = done.stdout.split(" ", 1)
    assert "the ledger" in message
    with Ledger.open(state) as ledger:
        assert len(ledger.runs()) == int(claimed) > 5


def test_a_write_that_fails_half_way_is_undone(ledger: Ledger) -> None:
    before = ledger.latest()

    def fail() -> None:
        with ledger._database.writing() as connection:
            connection.execute("INSERT INTO run (run_id, fingerprint) VALUES ('r', ?)", ("f" * 64,))
            raise ClaimRefusedError("no", next_step="no")

    with pytest.raises(ClaimRefusedError):
        fail()
    assert ledger.runs() == ()
    assert ledger.latest() == before
