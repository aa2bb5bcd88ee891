"""The limits on the working copy, against commands that hide what they write."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firsthand.isolation.interface import MIB, Limits, RunCancelledError

FILL = "import os, time\nblock = os.urandom(1 << 20)\n"
WRITE = "\nwith open('f', 'wb', buffering=0) as f:\n    for _ in range(24): f.write(block)\ntime.sleep(20)\n"

HIDING = {
    "closed folder": "os.mkdir('d'); os.chmod('d', 0o300); os.chdir('d')" + WRITE,
    "locked above": "os.makedirs('d/e'); os.chdir('d/e'); os.chmod('..', 0)" + WRITE,
    "too long a path": "for _ in range(30): os.mkdir('d' * 200); os.chdir('d' * 200)\n" + WRITE,
    "too deep": "for _ in range(200): os.mkdir('d'); os.chdir('d')\n" + WRITE,
    "without a name": "f = open('f', 'wb', buffering=0); os.unlink('f')\n"
    "for _ in range(24): f.write(block)\ntime.sleep(20)\n",
    "process closed to others": "import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"
    "f = open('f', 'wb', buffering=0); os.unlink('f')\nfor _ in range(24): f.write(block)\ntime.sleep(20)\n",
}


@pytest.mark.parametrize("way", HIDING)
def test_no_file_is_hidden_from_the_limit_on_the_copy(make_bench: Callable[..., Any], way: str) -> None:
    bench = make_bench(Limits(copy_bytes=8 * MIB))
    outcome = bench.run("/usr/bin/python3", "-c", FILL + HIDING[way], timeout_s=15).outcome
    assert (outcome.kind, outcome.limit) == ("output-limit", "copy-size")


def test_closed_folders_alone_are_no_offence(make_bench: Callable[..., Any]) -> None:
    bench = make_bench(Limits(copy_bytes=512 * MIB))
    script = "mkdir -p d/e && chmod 0 d/e && chmod 0300 d && sleep 0.5; chmod 700 d; chmod 700 d/e"
    assert bench.shell(script).outcome.exit_code == 0


def test_what_others_write_meanwhile_is_not_counted(make_bench: Callable[..., Any], tmp_path: Path) -> None:
    bench = make_bench(Limits(copy_bytes=2 * MIB))
    written: list[int] = []

    def write() -> bool:
        file = tmp_path / f"other{len(written)}"
        file.write_bytes(os.urandom(4 * MIB))
        written.append(file.stat().st_blocks)
        return False

    outcome = bench.shell("sleep 0.8", cancelled=write).outcome
    assert len(written) > 1
    assert outcome.kind == "exited"


def test_an_ended_process_hides_nothing(make_bench: Callable[..., Any], tmp_path: Path) -> None:
    bench = make_bench(Limits(copy_bytes=2 * MIB))

    def write() -> bool:
        (tmp_path / secrets.token_hex(4)).write_bytes(os.urandom(4 * MIB))
        return False

    # The child has ended and is not collected: as an ordinary user nobody may list what it held.
    script = "import os, time\nif os.fork() == 0: os._exit(0)\ntime.sleep(1)"
    outcome = bench.run("/usr/bin/python3", "-c", script, cancelled=write).outcome
    assert (outcome.kind, outcome.limit) == ("exited", None)


def test_no_link_leads_the_watchdog_out_of_the_copy(make_bench: Callable[..., Any], tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    for number in range(600):
        (outside / str(number)).touch()
    bench = make_bench(Limits(copy_entries=500), roots=(outside,))
    outcome = bench.shell(f"ln -s {outside} a; mkdir b; ln -s {outside} b/c; sleep 0.5").outcome
    assert outcome.kind == "exited"


def test_a_cancelled_command_ends_soon_however_large_its_copy(make_bench: Callable[..., Any]) -> None:
    bench = make_bench()
    asked: list[float] = []

    def cancelled() -> bool:
        asked.append(time.monotonic())
        return len(asked) > 3

    with pytest.raises(RunCancelledError):
        bench.shell("i=0; while [ $i -lt 20000 ]; do : > f$i; i=$((i+1)); done; sleep 10", cancelled=cancelled)
    assert asked[-1] - asked[0] < 5
