from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from firsthand.errors import StateError
from firsthand.isolation.interface import ProcessWatch
from firsthand.residues import Session, StateDirectory, identify
from firsthand.residues.register import read_register


def test_a_session_leaves_nothing(state: StateDirectory) -> None:
    with Session.open(state) as session:
        copy = session.tree("copy")
        (copy / "deep").mkdir()
        (copy / "deep" / "file").write_text("x")
        (copy / "deep").chmod(0)
        assert stat.S_IMODE(copy.stat().st_mode) == 0o700
        assert copy.parent == session.folder
    assert os.listdir(state.sessions) == []
    assert session.close() == ()


def test_everything_is_entered_before_it_exists(state: StateDirectory) -> None:
    with Session.open(state) as session:
        register = session.folder / "register.jsonl"
        # The owner stands before the first entry.
        assert (session.folder / "owner.json").stat().st_size > 0
        copy = session.tree("copy")
        assert read_register(register).trees == [copy.name]
        credential = session.credential(copy / ".config" / "credentials.json")
        assert not credential.exists()
        assert read_register(register).credentials == [f"{copy.name}/.config/credentials.json"]
        session.intend("another-token-of-a-process")
        assert read_register(register).tokens == ["another-token-of-a-process"]


def test_a_tree_that_can_not_be_entered_is_not_made(state: StateDirectory) -> None:
    with Session.open(state) as session:
        session._register.close()
        before = os.listdir(session.folder)
        with pytest.raises(StateError, match="register can't be written"):
            session.tree("copy")
        assert os.listdir(session.folder) == before


def test_it_watches_processes_as_a_backend_reports_them(state: StateDirectory, sleeper: Any) -> None:
    process, other = sleeper(), sleeper()
    with Session.open(state) as session:
        watch: ProcessWatch = session
        watch.started(process.pid)
        watch.started(other.pid)
        assert read_register(session.folder / "register.jsonl").running == [
            identify(process.pid),
            identify(other.pid),
        ]
        watch.ended(other.pid)
        assert read_register(session.folder / "register.jsonl").running == [identify(process.pid)]
    assert process.wait(10) == -9  # never reported as ended: ended at the close
    assert other.poll() is None  # reported as ended: whoever has that pid now is not ours


def test_a_kept_tree_stays_with_its_register_and_all_else_goes(state: StateDirectory, sleeper: Any) -> None:
    process = sleeper()
    session = Session.open(state)
    copy, home = session.tree("copy"), session.tree("home")
    (copy / "file").write_text("x")
    credential = session.credential(copy / "credential")
    credential.write_text("secret")
    session.started(process.pid)
    session.keep(copy, "the end of its processes is unknown")
    session.remove(copy)  # a kept one stays
    (left,) = session.close()
    assert (left.kind, left.where, left.state) == ("kept", str(copy), "kept")
    assert left.reason == "the end of its processes is unknown"
    assert (copy / "file").read_text() == "x"
    assert not credential.exists()
    assert not home.exists()
    assert len(read_register(session.folder / "register.jsonl").running) == 1
    assert process.wait(10) == -9


def test_a_tree_can_go_early(state: StateDirectory) -> None:
    with Session.open(state) as session:
        copy = session.tree("copy")
        session.remove(copy)
        assert not copy.exists()
        assert session.tree("copy") != copy


@pytest.mark.parametrize("purpose", ["", "..", "a/b", "Copy", "-", "a b", "\N{SNOWMAN}"])
def test_a_purpose_is_a_plain_word(state: StateDirectory, purpose: str) -> None:
    with Session.open(state) as session, pytest.raises(ValueError, match="not a purpose"):
        session.tree(purpose)


def test_only_its_own_trees_can_be_removed_kept_or_hold_credentials(state: StateDirectory, tmp_path: Path) -> None:
    with Session.open(state) as session, Session.open(state) as other:
        foreign = other.tree("copy")
        for path in (foreign, tmp_path, session.folder, session.folder / "lock", session.folder / ".." / "x-y"):
            with pytest.raises(ValueError, match="not a tree"):
                session.remove(path)
            with pytest.raises(ValueError, match="not a tree"):
                session.keep(path, "no")
        for path in (foreign / "c", tmp_path / "c", session.folder / "c", session.tree("a") / ".." / ".." / "c"):
            with pytest.raises(ValueError):  # noqa: PT011 - two messages, one of them the standard library's
                session.credential(path)
        with pytest.raises(ValueError, match="16 characters"):
            session.intend("sleep")
        assert foreign.exists()


def test_tokens_and_ids_are_told_apart(state: StateDirectory) -> None:
    with Session.open(state) as session, Session.open(state) as other:
        assert session.token != other.token
        # A path that names the session, in an editor's arguments say, must not look like one of its processes.
        assert session.token not in str(session.folder)
        assert session.id != other.id


def test_the_lock_is_not_inherited_by_programs(state: StateDirectory) -> None:
    with Session.open(state) as session:
        assert not os.get_inheritable(session._lock)
        assert not os.get_inheritable(session._register._descriptor)


def test_many_threads_may_use_one_session(state: StateDirectory) -> None:
    with Session.open(state) as session:
        trees: list[Path] = []

        def work() -> None:
            trees.extend(session.tree("copy") for _ in range(20))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(trees)) == 160
        assert len(read_register(session.folder / "register.jsonl").trees) == 160
