"""Negative probes: other processes, descriptors, the terminal, and what commands leave behind."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from firsthand.isolation.battery import traces
from firsthand.isolation.battery.bench import Bench, Ran
from firsthand.isolation.battery.judge import stopped
from firsthand.isolation.battery.probe import (
    REFUSED_CALL,
    REFUSED_FILE,
    Attempt,
    Finding,
    Line,
    Probe,
    Side,
    everywhere,
    on_linux,
)
from firsthand.isolation.battery.stage import Stage

_REFUSED_PROCESS = REFUSED_CALL | {"ESRCH"}
_LEAVINGS = ("$HOME", "$TMPDIR", "/dev/shm")  # noqa: S108 - the place is under test
_PATIENCE_S = 10.0


def _tokens(line: Line) -> set[str]:
    """The canaries of a report; anything that is not such a report holds none."""
    if not line.get("did"):
        return set()
    found = json.loads(line["saw"])
    return set(found["canaries"] if isinstance(found, dict) else found)


def _holder_seen(stage: Stage, side: Side, line: Line) -> bool:
    held = {stage.tokens[f"held-argument-{side}"], stage.tokens[f"held-environment-{side}"]}
    if side == "inside":
        held.add(stage.tokens["environment"])
        return bool(_tokens(line) & held)
    return held <= _tokens(line)


def _canary_in_environment(stage: Stage, side: Side, line: Line) -> bool:  # noqa: ARG001 - a callback
    return stage.tokens["environment"] in _tokens(line)


def _descriptor_open(stage: Stage, side: Side, line: Line) -> bool:
    if side == "control":
        return stage.tokens["descriptor"] in _tokens(line)
    return bool(line.get("did")) and json.loads(line["saw"])["numbers"] != []


def _signal(number: int, note: str) -> Attempt:
    def reached(stage: Stage, side: Side, line: Line) -> bool:
        if note and stage.holders[side].was_hit(note):
            return True
        return bool(line.get("did")) and line.get("saw") != "stranger"

    return Attempt(
        f"signal-{number}",
        "processes.send_signal",
        lambda stage, side: {"pid": stage.holders[side].pid, "signal": number},
        reached,
        _REFUSED_PROCESS,
    )


def _on_holder(word: str, call: str, refused: frozenset[str]) -> Attempt:
    def reached(stage: Stage, side: Side, line: Line) -> bool:  # noqa: ARG001 - a callback
        return bool(line.get("did")) and line.get("saw") != "stranger"

    return Attempt(
        word,
        call,
        lambda stage, side: {"pid": stage.holders[side].pid},
        reached,
        refused,
        unoffered=frozenset({"EPERM", "EACCES", "ENOSYS"}),
    )


_DESCRIPTORS = Attempt("descriptors", "processes.descriptors", reached=_descriptor_open)
_SCAN = Attempt("processes", "processes.scan", reached=_holder_seen)
_ENVIRONMENT = Attempt("own-environment", "processes.environment", reached=_canary_in_environment)
# Signal 0 asks only whether the process is there; the host sees nothing of it.
_SIGNALS = (_signal(0, ""), _signal(int(getattr(signal, "SIGUSR1", 10)), "u"), _signal(int(signal.SIGTERM), "t"))
_TRACE = _on_holder("ptrace", "processes.trace", _REFUSED_PROCESS)
_MEMORY = _on_holder("memory", "processes.memory", REFUSED_FILE)
_TERMINAL = Attempt(
    "terminal",
    "processes.terminal",
    lambda _, side: {"given": side == "control"},
    refused=REFUSED_FILE | {"ENXIO", "ENOTTY"},
    unoffered=frozenset({"ENOENT", "EACCES", "ENOSPC"}),
)
_PUSH = Attempt(
    "push-input",
    "processes.push_input",
    refused=REFUSED_CALL | {"EIO", "ENOTTY", "ENOENT"},
    unoffered=frozenset({"EIO", "EPERM", "EACCES", "ENOENT"}),
)


def lock_free(path: Path) -> bool | None:
    """Whether nobody holds the lock on a file any more; None if the file is not there: nobody ever held it."""
    import fcntl  # noqa: PLC0415 - POSIX only

    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _daemon_call(bench: Bench, call: str, lock: str) -> dict[str, str | int]:
    return {"id": "daemon", "call": call, "lock": lock, "nonce": bench.stage.nonce}


def _gone(bench: Bench, ran: Ran, lock: str, control: str) -> Finding:
    """Whether a daemon that is known to have lived is gone now, or honestly told to linger."""
    path = ran.copy / lock
    free = lock_free(path)
    lived = free is not None and bench.stage.nonce in path.read_text(encoding="ascii", errors="replace")
    cleanup = ran.result.outcome.cleanup if ran.result is not None else "unknown"
    path.unlink(missing_ok=True)
    if not lived:
        return Finding("not-run", f"no daemon came up: {ran.told()}", control)
    if free:
        return Finding("passed" if cleanup != "unknown" else "failed", f"gone; {ran.told()}", control)
    honest = cleanup == "may-linger" and not bench.available.ends_all
    return Finding("passed" if honest else "failed", f"still there; {ran.told()}", control)


def _daemon(bench: Bench) -> Finding:
    lock = bench.stage.workplace / "control" / "copy" / "lock"
    # Should this process be killed meanwhile, the control's daemon must not stay behind.
    bench.control_calls([{**_daemon_call(bench, "limits.daemon", "lock"), "while_lives": os.getpid()}])
    outlived = lock_free(lock) is False
    _let_go(lock)
    control = "worked: it outlived its command" if outlived else "did not work"
    ran = bench.run_calls("daemon", [_daemon_call(bench, "limits.daemon", "lock-daemon")], timeout_s=_PATIENCE_S)
    finding = _gone(bench, ran, "lock-daemon", control)
    return finding if outlived or finding.result != "passed" else Finding("no-control", finding.observed, control)


def _let_go(lock: Path) -> None:
    """End the control's daemon: it leaves when its file does. Waits until it has."""
    if lock_free(lock) is None:
        return
    kept = lock.with_suffix(".kept")
    lock.rename(kept)
    deadline = time.monotonic() + _PATIENCE_S
    while lock_free(kept) is False and time.monotonic() < deadline:
        time.sleep(0.01)
    kept.unlink()


def _deadline(bench: Bench) -> Finding:
    """A command that ignores signals must be gone, daemon and all, two seconds after its deadline."""
    finding = Finding("not-run", "not tried")
    # On a slow machine the command may not have come up by its deadline; then it gets a later one.
    for attempt, timeout_s in enumerate((0.3, 1.5, 6.0)):
        lock = f"lock-deadline-{attempt}"
        ran = bench.run_calls("deadline", [_daemon_call(bench, "limits.stubborn", lock)], timeout_s=timeout_s)
        finding = _gone(bench, ran, lock, "")
        if finding.result == "not-run" and ran.result is not None and ran.result.outcome.kind == "timed-out":
            continue
        in_time = ran.elapsed_s <= timeout_s + 2.0
        kind = ran.result.outcome.kind if ran.result is not None else ""
        if finding.result == "passed" and (kind != "timed-out" or not in_time):
            return Finding("failed", f"{ran.told()}, back {'in time' if in_time else 'late'}")
        return finding
    return finding


def _previous(bench: Bench) -> Finding:
    """What one command leaves in HOME, TMPDIR and shared memory, the next one must not see."""
    places = [place for place in _LEAVINGS if place.startswith("$") or os.path.isdir(place)]
    name = traces.fresh_name()
    leave = {"id": "leave", "call": "files.leave", "places": places, "name": name}
    find = {"id": "find", "call": "files.find", "places": places, "name": name}
    # The control leaves its file in its own folder only, which goes with the battery.
    own = {"places": ["$HOME", "$TMPDIR"], "name": name}
    outside = {**bench.control_calls([{**leave, **own}]), **bench.control_calls([{**find, **own}])}
    control = "worked" if outside.get("find", {}).get("saw") == '["$HOME", "$TMPDIR"]' else "did not work"
    first = bench.run_calls("leave", [leave], timeout_s=_PATIENCE_S).lines.get("leave", {})
    second = bench.run_calls("find", [find], timeout_s=_PATIENCE_S).lines.get("find", {})
    _take_away(name)
    if not first.get("did") or not second.get("did"):
        return Finding(
            "not-run", f"first: {first.get('errno', 'left')}; second: {second.get('errno', 'no report')}", control
        )
    if second["saw"] != "[]":
        return Finding("failed", f"still seen in {second['saw']}", control)
    return Finding("passed" if control == "worked" else "no-control", "seen nowhere", control)


def _take_away(name: str) -> None:
    """What a leaky backend let a command leave on the host."""
    for place in ("/dev/shm", "/tmp", os.path.expanduser("~"), tempfile.gettempdir()):  # noqa: S108 - as above
        with suppress(OSError):
            os.unlink(os.path.join(place, name))


def _group(probe: str, question: str, *attempts: Attempt) -> Probe:
    return Probe(probe, question, everywhere("must"), lambda bench: stopped(bench, attempts), attempts)


PROBES = (
    # First of all attempts: the later ones open descriptors of their own.
    _group("descriptors", "Is no descriptor open beyond the three streams?", _DESCRIPTORS),
    _group("environment-leak", "Is nothing of the host's environment in the command's own?", _ENVIRONMENT),
    Probe(
        "other-processes",
        "Are arguments and environments of other processes out of sight?",
        on_linux("must"),
        lambda bench: stopped(bench, (_SCAN,)),
        (_SCAN,),
    ),
    _group("signals", "Can no signal be sent to a process outside?", *_SIGNALS),
    Probe(
        "ptrace",
        "Can no process outside be traced or its memory opened?",
        on_linux("where-offered"),
        lambda bench: stopped(bench, (_TRACE, _MEMORY)),
        (_TRACE, _MEMORY),
    ),
    Probe(
        "terminal",
        "Is no terminal in reach?",
        everywhere("where-offered"),
        lambda bench: stopped(bench, (_TERMINAL,)),
        (_TERMINAL,),
    ),
    Probe(
        "push-input",
        "Can nothing be pushed into a terminal's input?",
        on_linux("where-offered"),
        lambda bench: stopped(bench, (_PUSH,)),
        (_PUSH,),
    ),
    Probe("daemon", "Is a daemon gone, or told to linger, once its command has ended?", everywhere("must"), _daemon),
    Probe("deadline", "Is a command that ignores signals gone at its deadline?", everywhere("must"), _deadline),
    Probe("previous-command", "Is what the command before left out of sight?", everywhere("must"), _previous),
)
