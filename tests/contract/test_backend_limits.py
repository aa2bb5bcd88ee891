"""Limits: what one command may use, and how the host tells that it used too much."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from firsthand.isolation.interface import MIB, Available, Limits, RunCancelledError

Enter = Callable[..., Any]

_FORKS = """
import os, signal
count = 0
try:
    while count < 60:
        if os.fork() == 0:
            signal.pause()
        count += 1
except BlockingIOError:
    pass
print(count)
"""


@pytest.mark.parametrize(("stream", "name"), [(1, "stdout"), (2, "stderr")])
def test_a_flood_is_cut_and_ended(enter: Enter, stream: int, name: str) -> None:
    box = enter(limits=Limits(output_bytes=50_000))
    started = time.monotonic()
    result = box.sh(f"yes >&{stream}", timeout_s=30)
    assert time.monotonic() - started < 10
    assert (result.outcome.kind, result.outcome.limit) == ("output-limit", name)
    captured = result.stdout if stream == 1 else result.stderr
    assert captured.data.startswith(b"y\ny\n")
    assert len(captured.data) <= 50_000


@pytest.mark.parametrize(
    ("size", "kind"), [(0, "exited"), (49_999, "exited"), (50_000, "exited"), (50_001, "output-limit")]
)
def test_the_limit_itself_is_allowed(enter: Enter, size: int, kind: str) -> None:
    box = enter(limits=Limits(output_bytes=50_000))
    result = box.sh(f"head -c {size} /dev/zero")
    assert result.outcome.kind == kind
    assert len(result.stdout.data) == min(size, 50_000)


def test_both_streams_have_a_limit_each(enter: Enter) -> None:
    box = enter(limits=Limits(output_bytes=50_000))
    result = box.sh("head -c 40000 /dev/zero; head -c 40000 /dev/zero >&2")
    assert (result.outcome.kind, result.stdout.total_bytes, result.stderr.total_bytes) == ("exited", 40_000, 40_000)


def test_a_copy_that_grows_too_large_ends_the_command(enter: Enter) -> None:
    box = enter(limits=Limits(copy_bytes=4 * MIB))
    result = box.sh("head -c 8000000 /dev/zero >large; sleep 30", timeout_s=30)
    assert (result.outcome.kind, result.outcome.limit) == ("output-limit", "copy-size")


def test_a_copy_with_too_many_files_ends_the_command(enter: Enter) -> None:
    box = enter(limits=Limits(copy_entries=200))
    result = box.python("import time\nfor n in range(1000): open(f'f{n}', 'w').close()\ntime.sleep(30)", timeout_s=30)
    assert (result.outcome.kind, result.outcome.limit) == ("output-limit", "copy-entries")


def test_a_copy_below_its_limits_is_left_alone(enter: Enter) -> None:
    box = enter(limits=Limits(copy_bytes=4 * MIB, copy_entries=200))
    result = box.sh("head -c 2000000 /dev/zero >large; for n in $(seq 100); do : >f$n; done; sleep 0.5")
    assert (result.outcome.kind, result.outcome.exit_code) == ("exited", 0)


def test_a_file_stops_at_its_limit(enter: Enter) -> None:
    box = enter(limits=Limits(file_bytes=MIB))
    result = box.sh("head -c 3000000 /dev/zero >large")
    assert result.outcome.exit_code != 0
    assert (box.copy / "large").stat().st_size == MIB


def test_processes_are_limited(enter: Enter, available: Available) -> None:
    if any("process" in words and "number" in words for words in available.not_enforced):
        pytest.skip("the backend says that it can't limit the number of processes here")
    box = enter(limits=Limits(processes=20))
    result = box.python(_FORKS)
    assert int(result.stdout.data) <= 20


def test_memory_is_limited(enter: Enter, available: Available) -> None:
    box = enter(limits=Limits(memory_bytes=128 * MIB))
    result = box.python("b = bytearray(400 * 1024 * 1024)\nprint('taken')")
    if any("memory" in words and "per process" in words for words in available.not_enforced):
        pytest.skip("the backend says that it can't limit a process's memory here")
    assert b"taken" not in result.stdout.data
    assert result.outcome.kind != "sandbox-failed"


def test_limits_of_one_command_do_not_burden_the_next(enter: Enter) -> None:
    box = enter(limits=Limits(output_bytes=1000))
    for _ in range(3):
        assert box.sh("yes").outcome.kind == "output-limit"
        assert box.sh("echo fine").stdout.data == b"fine\n"


def test_a_cancelled_request_ends_the_command_at_once(enter: Enter) -> None:
    box = enter()
    started = time.monotonic()
    with pytest.raises(RunCancelledError) as caught:
        box.run(["/bin/sh", "-c", "sleep 60 & wait"], timeout_s=60, cancelled=lambda: time.monotonic() - started > 0.3)
    assert time.monotonic() - started < 5
    assert caught.value.cleanup != "unknown"
    assert box.sh("echo next").stdout.data == b"next\n", "the enclosure serves the next command"


def test_a_request_that_is_not_cancelled_runs_to_its_end(enter: Enter) -> None:
    asked: list[float] = []

    def cancelled() -> bool:
        asked.append(time.monotonic())
        return False

    result = enter().run(["/bin/sh", "-c", "sleep 1; echo done"], cancelled=cancelled)
    assert result.stdout.data == b"done\n"
    assert len(asked) >= 2
