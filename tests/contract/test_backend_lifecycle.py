"""From loading to leaving: what `firsthand.isolation.interface` says of a backend and of its enclosures."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from firsthand.isolation.interface import Available, Backend, Enclosure, Unavailable

Enter = Callable[..., Any]


def test_it_is_a_backend_and_bears_its_entry_points_name(loaded: Backend, backend_entry: EntryPoint) -> None:
    assert isinstance(loaded, Backend)
    assert loaded.name == backend_entry.name


def test_availability_is_stable_and_complete(loaded: Backend, backend_entry: EntryPoint) -> None:
    first, second = loaded.availability(), backend_entry.load()().availability()
    assert first == second
    if isinstance(first, Unavailable):
        assert first.reason
        assert first.next_step
        return
    assert re.fullmatch(r"[0-9a-f]{64}", first.profile_digest)
    if first.launcher is not None:
        assert os.path.isabs(first.launcher.path)
        assert os.path.realpath(first.launcher.path) == first.launcher.path
        assert first.launcher.version


def test_an_enclosure_keeps_the_contract(box: Any) -> None:
    assert isinstance(box.enclosure, Enclosure)


def test_commands_see_the_copy_and_the_host_sees_their_work(box: Any) -> None:
    result = box.sh("cat note.txt below/deep.txt && echo made >below/made.txt && rm note.txt")
    assert result.stdout.data == b"note\ndeep\n"
    assert (box.copy / "below" / "made.txt").read_text() == "made\n"
    assert not (box.copy / "note.txt").exists()


def test_the_host_changes_the_copy_between_commands(box: Any) -> None:
    assert box.sh("cat note.txt").stdout.data == b"note\n"
    (box.copy / "note.txt").unlink()
    (box.copy / "note.txt").write_bytes(b"other\n")
    (box.copy / "note.txt").chmod(0o644)
    assert box.sh("cat note.txt").stdout.data == b"other\n"


def test_what_one_command_leaves_outside_the_copy_is_gone_for_the_next(box: Any) -> None:
    leave = 'echo x >"$HOME/left" && echo x >"$TMPDIR/left" && echo done'
    assert box.sh(leave).stdout.data == b"done\n"
    assert box.sh('ls -A "$HOME" "$TMPDIR" | grep left').stdout.data == b""


def test_two_enclosures_know_nothing_of_each_other(enter: Enter) -> None:
    one, other = enter({"name.txt": b"one"}), enter({"name.txt": b"other"})
    assert (one.sh("cat name.txt").stdout.data, other.sh("cat name.txt").stdout.data) == (b"one", b"other")
    assert one.sh(f"cat {other.copy}/name.txt").outcome.exit_code != 0
    assert other.sh(f"ls {one.copy}").stdout.data == b""


def test_enclosures_in_two_threads_run_at_the_same_time(enter: Enter) -> None:
    boxes = [enter({"name.txt": str(number).encode()}) for number in range(2)]
    seen: dict[int, list[bytes]] = {0: [], 1: []}

    def work(number: int) -> None:
        for _ in range(5):
            seen[number].append(boxes[number].sh("cat name.txt").stdout.data)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {0: [b"0"] * 5, 1: [b"1"] * 5}


def test_the_thread_that_opened_it_may_be_gone(enter: Enter) -> None:
    opened: list[Any] = []
    opener = threading.Thread(target=lambda: opened.append(enter({"note.txt": b"note"})))
    opener.start()
    opener.join()
    (box,) = opened
    for _ in range(2):
        results: list[Any] = []
        runner = threading.Thread(target=lambda results=results: results.append(box.sh("sleep 0.1; cat note.txt")))
        runner.start()
        runner.join()
        assert (results[0].outcome.kind, results[0].stdout.data) == ("exited", b"note")
    assert box.sh("cat note.txt").stdout.data == b"note"


def test_what_is_registered_as_started_is_registered_as_ended(box: Any, available: Available) -> None:
    box.sh("true")
    box.sh("sleep 60", timeout_s=0.2)
    assert len(box.watch.begun) >= 2
    if available.ends_all:
        assert sorted(box.watch.over) == sorted(box.watch.begun)


def test_no_descriptor_of_the_host_is_kept(box: Any) -> None:
    if not os.path.isdir("/dev/fd"):
        return
    box.sh("true")
    before = len(os.listdir("/dev/fd"))
    for _ in range(5):
        box.sh("true")
        box.sh("sleep 60", timeout_s=0.05)
        box.rewrite("note.txt", b"x")
    assert len(os.listdir("/dev/fd")) <= before


def test_leaving_without_a_command_leaves_the_copy_as_it_was(backend: Backend, enter: Enter) -> None:
    box = enter({"note.txt": b"note\n"})
    assert sorted(path.name for path in box.copy.iterdir()) == ["note.txt"]
    assert (box.copy / "note.txt").read_bytes() == b"note\n"


def test_an_unreadable_tree_stops_neither_the_command_nor_the_host(box: Any, tmp_path: Path) -> None:
    result = box.sh("mkdir -p d/e/f && chmod 0500 d/e && chmod 0000 d && exit 3")
    assert (result.outcome.kind, result.outcome.exit_code) == ("exited", 3)
    if os.geteuid() != 0:
        (box.copy / "d").chmod(0o700)
    assert (box.copy / "d" / "e" / "f").is_dir()
