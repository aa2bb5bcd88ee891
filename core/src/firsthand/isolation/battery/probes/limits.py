"""Probes of limits: no control is made of a bomb; what the host counts decides."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from firsthand.isolation.battery.bench import BENCH_LIMITS, Bench, Ran
from firsthand.isolation.battery.judge import stopped
from firsthand.isolation.battery.probe import Attempt, Finding, Probe, Side, everywhere, on_linux
from firsthand.isolation.battery.probes.processes import lock_free
from firsthand.isolation.battery.stage import Stage
from firsthand.isolation.interface import MIB
from firsthand.records import LimitName

_PATIENCE_S = 15.0
_NO_BOMB = "none by design: an unconfined bomb could harm the machine; the host counts what came of it"
_STORM = 72
_STEP_BYTES = 16 * MIB
_STEPS = 24
_PIECE_BYTES = 3 * MIB


def _storm(bench: Bench) -> Finding:
    call = {"id": "storm", "call": "limits.storm", "number": _STORM, "counter": "count-storm", "lock": "lock-storm"}
    ran = bench.run_calls("storm", [call], timeout_s=_PATIENCE_S)
    counted = _take_count(ran.copy / "count-storm")
    if ran.result is None or counted == 0:
        return Finding("not-run", ran.told(), _NO_BOMB)
    free = lock_free(ran.copy / "lock-storm")
    (ran.copy / "lock-storm").unlink(missing_ok=True)
    told = f"{counted} of {_STORM} processes came up under a limit of {BENCH_LIMITS.processes}; {ran.told()}"
    if not free and ran.result.outcome.cleanup != "may-linger":
        return Finding("failed", f"{told}; some are still there", _NO_BOMB)
    return Finding("passed" if counted <= BENCH_LIMITS.processes else "failed", told, _NO_BOMB)


def _memory(bench: Bench) -> Finding:
    call = {"id": "memory", "call": "limits.memory", "steps": _STEPS, "step_bytes": _STEP_BYTES, "counter": "count"}
    ran = bench.run_calls("memory", [call], timeout_s=_PATIENCE_S)
    counted = _take_count(ran.copy / "count")
    if ran.result is None or counted == 0:
        return Finding("not-run", ran.told(), _NO_BOMB)
    taken = counted * _STEP_BYTES
    told = f"{taken // MIB} MiB could be taken under a limit of {BENCH_LIMITS.memory_bytes // MIB}; {ran.told()}"
    return Finding("passed" if taken <= BENCH_LIMITS.memory_bytes else "failed", told, _NO_BOMB)


def _copy_size(bench: Bench) -> Finding:
    """Files within their own limit that together exceed the copy's; the command then waits to be stopped."""
    call = {"id": "fill", "call": "limits.fill", "place": ".", "files": 5, "file_bytes": _PIECE_BYTES, "wait": True}
    ran = bench.run_calls("fill", [call], timeout_s=_PATIENCE_S)
    for left in ran.copy.glob("fill-*"):
        left.unlink()
    return _cut(ran, "copy-size")


def _flood(bench: Bench) -> Finding:
    told = []
    streams: tuple[tuple[int, LimitName], ...] = ((1, "stdout"), (2, "stderr"))
    for stream, name in streams:
        call = {"id": "flood", "call": "limits.flood", "stream": stream}
        ran = bench.run_calls("flood", [call], timeout_s=_PATIENCE_S)
        finding = _cut(ran, name)
        told.append(f"{name}: {finding.observed}")
        if finding.result != "passed":
            return Finding(finding.result, "; ".join(told))
    return Finding("passed", "; ".join(told))


def _cut(ran: Ran, expected: LimitName) -> Finding:
    """Whether a command that would have gone on was ended by that limit, in time, with bounded output."""
    if ran.result is None:
        return Finding("not-run", ran.told())
    kept = max(len(ran.result.stdout.data), len(ran.result.stderr.data))
    right = ran.result.outcome.limit == expected and ran.elapsed_s < _PATIENCE_S and kept <= BENCH_LIMITS.output_bytes
    return Finding("passed" if right else "failed", f"{ran.told()}, at most {kept} bytes of a stream kept")


def _large_file_detail(stage: Stage, side: Side) -> Mapping[str, Any]:  # noqa: ARG001 - a callback
    return {"own": "large-file", "limit_bytes": BENCH_LIMITS.file_bytes}


_LARGE_FILE = Attempt("large-file", "limits.large_file", _large_file_detail, refused=frozenset({"EFBIG"}))


def _scratch(word: str, place: str) -> Attempt:
    detail = {"place": place, "files": 3, "file_bytes": _PIECE_BYTES}
    full = frozenset({"ENOSPC", "EDQUOT"})
    return Attempt(f"fill-{word}", "limits.fill", lambda *_: detail, refused=full, unoffered=full)


_SCRATCH = (
    _scratch("home", "$HOME"),
    _scratch("tmpdir", "$TMPDIR"),
    *((_scratch("shared-memory", "/dev/shm"),) if sys.platform == "linux" else ()),  # noqa: S108 - the place is under test
)


def _take_count(path: Path) -> int:
    """Bytes that processes added to a file, which is removed."""
    try:
        counted = os.lstat(path).st_size
        path.unlink()
    except OSError:
        return 0
    return counted


PROBES = (
    Probe("fork-storm", "Is the number of processes limited?", on_linux("must"), _storm),
    Probe("memory", "Is a process's memory limited?", on_linux("must"), _memory),
    Probe(
        "large-file",
        "Is the size of a file limited?",
        everywhere("must"),
        lambda bench: stopped(bench, (_LARGE_FILE,)),
        (_LARGE_FILE,),
    ),
    Probe(
        "scratch",
        "Are HOME, TMPDIR and shared memory limited?",
        on_linux("must"),
        lambda bench: stopped(bench, _SCRATCH),
        _SCRATCH,
    ),
    Probe("copy-size", "Is a command stopped that fills the copy?", everywhere("must"), _copy_size),
    Probe("flood", "Is a flood of output cut?", everywhere("must"), _flood),
)
