from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firsthand.residues import Residue, Session, StateDirectory, list_residues, sweep

Crash = Callable[[Session], None]


def kinds(residues: list[Residue]) -> list[tuple[str, str]]:
    return [(residue.kind, residue.state) for residue in residues]


def snapshot(folder: Path) -> dict[str, Any]:
    return {
        str(path): (path.lstat().st_mtime_ns, path.lstat().st_mode, path.lstat().st_ino)
        for path in sorted(folder.rglob("*"))
    }


def test_nothing_is_left_of_a_crashed_session(state: StateDirectory, crash: Crash, sleeper: Any) -> None:
    session = Session.open(state)
    copy = session.tree("copy")
    (copy / "locked").mkdir()
    (copy / "locked" / "file").write_text("x")
    (copy / "locked").chmod(0)
    credential = session.credential(copy / "credential")
    credential.write_text("secret")
    registered, unregistered = sleeper(), sleeper(session.token)
    session.started(registered.pid)
    crash(session)

    before = snapshot(state.path)
    listed = list_residues(state)
    assert sorted(kinds(listed)) == [
        ("credential", "left"),
        *([("process", "left")] * (2 if sys.platform == "linux" else 1)),
        ("tree", "left"),
    ]
    assert all(residue.session == session.id for residue in listed)
    assert snapshot(state.path) == before
    assert registered.poll() is None

    swept = sweep(state, clean_kept=False)
    assert {state_ for _, state_ in kinds(swept)} == {"ended", "removed"}
    assert registered.wait(10) == -9
    if sys.platform == "linux":
        assert unregistered.wait(10) == -9
    assert os.listdir(state.sessions) == []
    assert list_residues(state) == []
    assert sweep(state, clean_kept=True) == []


def test_a_living_session_is_not_touched(state: StateDirectory, sleeper: Any) -> None:
    with Session.open(state) as session:
        copy = session.tree("copy")
        process = sleeper(session.token)
        session.started(process.pid)
        before = snapshot(state.path)
        assert sweep(state, clean_kept=True) == []
        assert list_residues(state) == []
        assert snapshot(state.path) == before
        assert copy.exists()
        assert process.poll() is None


def test_a_kept_copy_goes_only_on_demand(state: StateDirectory, crash: Crash) -> None:
    session = Session.open(state)
    copy, home = session.tree("copy"), session.tree("home")
    (copy / "file").write_text("x")
    session.keep(copy, "why")
    crash(session)
    assert kinds(sweep(state, clean_kept=False)) == [("kept", "kept"), ("tree", "removed")]
    assert not home.exists()
    assert [(residue.where, residue.reason) for residue in list_residues(state)] == [(str(copy), "why")]
    assert kinds(sweep(state, clean_kept=False)) == [("kept", "kept")]
    assert (copy / "file").read_text() == "x"
    assert kinds(sweep(state, clean_kept=True)) == [("kept", "removed")]
    assert os.listdir(state.sessions) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs a process of another user")
def test_nothing_but_credentials_goes_while_a_process_is_not_proved_gone(
    tmp_path_factory: pytest.TempPathFactory, sleeper: Any
) -> None:
    """The sweeper is an ordinary user, and the survivor is root's."""
    process = sleeper()
    folder = tmp_path_factory.mktemp("user")
    # Up to pytest's own folder and no further: what lies above is the machine's.
    base = tmp_path_factory.getbasetemp()
    for above in (folder, *(parent for parent in folder.parents if parent.is_relative_to(base.parent))):
        if above.stat().st_uid == 0 and "pytest" in above.name:
            above.chmod(0o755)
    folder.chmod(0o755)
    os.chown(folder, 65534, 65534)
    # The canonical writer's codec is loaded now: the interpreter may lie where an ordinary user can't read.
    "".encode("utf-16be")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setresuid(65534, 65534, 65534)
            state = StateDirectory.open(folder / "state")
            session = Session.open(state)
            copy = session.tree("copy")
            session.credential(copy / "credential").write_text("secret")
            session.started(process.pid)
            session.keep(copy, "why")
            session.close()
            answer = [kinds(sweep(state, clean_kept=True)), copy.exists(), (copy / "credential").exists()]
            os.write(writing, json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer_file:
        text = answer_file.read()
    os.waitpid(child, 0)
    assert json.loads(text) == [[["process", "unknown"], ["kept", "unknown"]], True, False]
    assert process.poll() is None


@pytest.mark.parametrize("stage", ["folder", "owner", "torn owner", "lock"])
def test_a_session_that_a_crash_cut_short_is_cleared(state: StateDirectory, stage: str) -> None:
    folder = state.sessions / "0123456789abcdef"
    folder.mkdir(mode=0o700)
    if stage != "folder":
        (folder / "owner.json").write_text('{"pid"' if stage == "torn owner" else "{}")
    if stage == "lock":
        (folder / "lock").touch()
    assert kinds(list_residues(state)) == [("session", "left")]
    assert sweep(state, clean_kept=False) == []
    assert os.listdir(state.sessions) == []


def test_what_is_not_ours_is_told_and_left(state: StateDirectory, tmp_path: Path) -> None:
    (state.sessions / "notes").mkdir()
    (state.sessions / "notes" / "lock").touch()
    (state.sessions / "0123456789abcdef").write_text("a file where a session would be")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("x")
    (state.sessions / "fedcba9876543210").symlink_to(outside)
    assert kinds(list_residues(state)) == [("entry", "unknown")] * 3
    assert kinds(sweep(state, clean_kept=True)) == [("entry", "unknown")] * 3
    assert sorted(os.listdir(state.sessions)) == ["0123456789abcdef", "fedcba9876543210", "notes"]
    assert os.listdir(outside) == ["file"]


@pytest.mark.parametrize("target", ["credential", "folder above it"])
def test_a_link_in_a_credentials_way_is_removed_and_not_followed(
    state: StateDirectory, crash: Crash, tmp_path: Path, target: str
) -> None:
    home = tmp_path / "home" / ".config"
    home.mkdir(parents=True)
    original = home / "credentials.json"
    original.write_text("the user's own")
    session = Session.open(state)
    run = session.tree("run")
    credential = session.credential(run / ".config" / "credentials.json")
    if target == "credential":
        credential.parent.mkdir()
        credential.symlink_to(original)
    else:
        credential.parent.symlink_to(home)
        assert credential.exists()  # the attack: by its path, the user's own file stands there
    session.keep(run, "so that only the credential goes")
    crash(session)
    sweep(state, clean_kept=False)
    assert original.read_text() == "the user's own"
    assert not os.path.lexists(credential if target == "credential" else credential.parent)
    assert run.exists()


def test_links_in_trees_lead_nowhere(state: StateDirectory, crash: Crash, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o750)
    (outside / "file").write_text("x")
    session = Session.open(state)
    copy = session.tree("copy")
    (copy / "link").symlink_to(outside)
    (session.folder / "stray").symlink_to(outside)
    crash(session)
    sweep(state, clean_kept=False)
    assert os.listdir(state.sessions) == []
    assert (outside / "file").read_text() == "x"
    assert outside.stat().st_mode & 0o777 == 0o750


def test_a_forged_register_reaches_nothing_outside(state: StateDirectory, crash: Crash, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    session = Session.open(state)
    session.tree("copy")
    for path in ("../../../outside", str(outside), "..", "."):
        session._register.append(kind="credential", path=path)
        session._register.append(kind="tree", path=path)
    crash(session)
    sweep(state, clean_kept=True)
    assert outside.read_text() == "x"


SWEEPER = """
import sys, json
from pathlib import Path
from firsthand.residues import StateDirectory, sweep
state = StateDirectory.open(Path(sys.argv[1]))
print(json.dumps([[r.kind, r.state] for r in sweep(state, clean_kept=True)]))
"""


def test_sweeps_at_once_share_the_work(state: StateDirectory, crash: Crash, sleeper: Any) -> None:
    living = Session.open(state)
    kept_alive = living.tree("copy")
    processes = []
    for _ in range(12):
        session = Session.open(state)
        copy = session.tree("copy")
        for number in range(50):
            (copy / str(number)).write_text("x")
        processes.append(sleeper(session.token))
        session.started(processes[-1].pid)
        crash(session)
    sweepers = [
        subprocess.Popen([sys.executable, "-c", SWEEPER, str(state.path)], stdout=subprocess.PIPE) for _ in range(4)
    ]
    outputs = [sweeper.communicate(timeout=120)[0] for sweeper in sweepers]
    assert [sweeper.returncode for sweeper in sweepers] == [0, 0, 0, 0]
    found = [tuple(residue) for output in outputs for residue in json.loads(output)]
    assert found.count(("tree", "removed")) == 12
    assert found.count(("process", "ended")) == 12
    assert set(found) == {("tree", "removed"), ("process", "ended")}
    assert os.listdir(state.sessions) == [living.id]
    assert kept_alive.exists()
    living.close()
    for process in processes:
        assert process.wait(10) == -9
