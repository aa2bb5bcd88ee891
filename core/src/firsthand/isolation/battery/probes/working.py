"""Positive probes: a command can do its work, and its end is reported as it was."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from typing import Any

from firsthand.isolation.battery.bench import Bench, Ran
from firsthand.isolation.battery.judge import works
from firsthand.isolation.battery.probe import Attempt, Finding, Line, Probe, Side, everywhere, on_linux
from firsthand.isolation.battery.stage import Stage

_LEFT = "left-by-probe.txt"
_PLACES = {"copy": ".", "home": "$HOME", "tmpdir": "$TMPDIR"}
_FIXED = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONNOUSERSITE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}
_FREE = ("HOME", "TMPDIR", "USER", "LOGNAME")
_SYSTEM_ADDS = {"darwin": frozenset({"__CF_USER_TEXT_ENCODING"})}
"""Variables that the system itself puts into every process."""

_MISSING_PROGRAM = "/usr/bin/firsthand-no-such-program"


def _said(*expected: str) -> Any:  # noqa: ANN401 - a callback in the shape that attempts want
    def reached(stage: Stage, side: Side, line: Line) -> bool:  # noqa: ARG001 - a callback
        return bool(line.get("did")) and line.get("saw") in expected

    return reached


def _place(name: str, path: str) -> Attempt:
    def detail(stage: Stage, side: Side) -> Mapping[str, Any]:  # noqa: ARG001 - a callback
        return {"place": path, **({"leave": _LEFT, "text": stage.nonce} if name == "copy" else {})}

    return Attempt(f"files-{name}", "work.files", detail, controlled=False)


_WORK_AREA = tuple(_place(name, path) for name, path in _PLACES.items())
_SHARED_MEMORY = _place("shared-memory", "/dev/shm")  # noqa: S108 - the place is under test
_GRANDCHILD = Attempt("grandchild", "work.grandchild", reached=_said("grandchild 0"), controlled=False)
_KILL_CHILD = Attempt("kill-own-child", "work.kill_child", reached=_said("-9"), controlled=False)
_FRESH_PROGRAM = Attempt(
    "fresh-program",
    "work.fresh_program",
    lambda *_: {"program": shutil.which("true", path="/usr/bin:/bin") or "/usr/bin/true"},
    reached=_said("0"),
    controlled=False,
)
_LOOPBACK = Attempt("own-loopback", "work.loopback", reached=_said("got x"), controlled=False)
_ENVIRONMENT = Attempt("environment", "work.environment", controlled=False)
_STREAMS = Attempt("streams", "work.streams", reached=_said("worked"), controlled=False)
_WHEREABOUTS = Attempt(
    "whereabouts",
    "work.whereabouts",
    lambda stage, _: {"here": "marker.txt", "there": str(stage.source / "marker.txt")},
    controlled=False,
)


def _starts(bench: Bench) -> Finding:
    return _ended(bench, (("exit 0", "exited", 0),))


def _truthful_end(bench: Bench) -> Finding:
    return _ended(
        bench,
        (
            ("exit 1", "exited", 1),
            ("exit 7", "exited", 7),
            ("kill -9 $$", "signalled", 9),
            ("exit 137", "exited", 137),
        ),
    )


def _ended(bench: Bench, cases: tuple[tuple[str, str, int], ...]) -> Finding:
    told, right = [], True
    for script, kind, number in cases:
        ran = bench.shell(script)
        if ran.result is None:
            return Finding("not-run", f"{script}: {ran.told()}")
        outcome = ran.result.outcome
        right = right and (outcome.kind, outcome.exit_code if kind == "exited" else outcome.signal) == (kind, number)
        right = right and _cleaned(bench, ran)
        told.append(f"{script}: {ran.told()}")
    return Finding("passed" if right else "failed", "; ".join(told))


def _cleaned(bench: Bench, ran: Ran) -> bool:
    allowed = {"complete"} if bench.available.ends_all else {"complete", "may-linger"}
    return ran.result is not None and ran.result.outcome.cleanup in allowed


def _could_not_start(bench: Bench) -> Finding:
    ran = bench.run((_MISSING_PROGRAM,), timeout_s=20.0)
    if ran.result is None:
        return Finding("not-run", ran.told())
    return Finding("passed" if ran.result.outcome.kind == "could-not-start" else "failed", ran.told())


def _work_area(bench: Bench) -> Finding:
    attempts = (*_WORK_AREA, _SHARED_MEMORY) if sys.platform == "linux" else _WORK_AREA
    finding = works(bench, attempts)
    if finding.result != "passed":
        return finding
    # The inside's word alone is not enough: what it wrote into the copy must be there for the host.
    left = bench.shared_copy / _LEFT
    try:
        text = left.read_text(encoding="ascii")
    except OSError as error:
        return Finding("failed", f"{finding.observed}; on the host: {error.strerror}")
    if text != bench.stage.nonce:
        return Finding("failed", f"{finding.observed}; on the host: other bytes")
    return Finding("passed", f"{finding.observed}; seen on the host")


def _not_root(bench: Bench) -> Finding:
    if os.geteuid() != 0:
        return Finding("no-control", "the host is not root", "nothing to drop", offered=False)
    try:
        owner = os.lstat(bench.shared_copy / _LEFT).st_uid
    except OSError as error:
        return Finding("not-run", f"no file made inside: {error.strerror}")
    return Finding("passed" if owner != 0 else "failed", f"what a command makes belongs to uid {owner}", "root makes 0")


def _exact_environment(bench: Bench) -> Finding:
    line = bench.line("inside", _ENVIRONMENT)
    if line is None or not line.get("did"):
        return Finding("not-run", bench.why_silent("inside") if line is None else str(line))
    seen: dict[str, str] = json.loads(line["saw"])
    extra = set(seen) - set(_FIXED) - set(_FREE) - _SYSTEM_ADDS.get(sys.platform, frozenset())
    missing = {*_FIXED, *_FREE} - set(seen)
    wrong = {name for name, value in _FIXED.items() if name in seen and seen[name] != value}
    if extra or missing or wrong:
        parts = (("extra", extra), ("missing", missing), ("other value", wrong))
        return Finding("failed", "; ".join(f"{word}: {', '.join(sorted(names))}" for word, names in parts if names))
    return Finding("passed", f"exactly {', '.join(sorted(seen))}")


def _shows_copy(bench: Bench) -> Finding:
    line = bench.line("inside", _WHEREABOUTS)
    if line is None or not line.get("did"):
        return Finding("not-run", bench.why_silent("inside") if line is None else str(line))
    seen: dict[str, str] = json.loads(line["saw"])
    tokens = {bench.stage.tokens["copy"]: "the copy", bench.stage.tokens["source"]: "the source"}
    here, there = (tokens.get(seen[key], seen[key]) for key in ("here", "there"))
    at_place = seen["cwd"] == str(bench.stage.source)
    right = here == "the copy" and (there == "the copy" and at_place if sys.platform == "linux" else "error" in there)
    observed = f"here: {here}; at the source's path: {there}; working there: {'yes' if at_place else 'no'}"
    return Finding("passed" if right else "failed", observed)


def _positive(probe: str, question: str, attempt: Attempt) -> Probe:
    return Probe(probe, question, everywhere("must"), lambda bench: works(bench, (attempt,)), (attempt,))


PROBES = (
    Probe("starts", "Does a command run to its end?", everywhere("must"), _starts),
    Probe("truthful-end", "Are exit codes and signals told as they were?", everywhere("must"), _truthful_end),
    Probe("could-not-start", "Is a missing program told from a failed one?", everywhere("must"), _could_not_start),
    Probe(
        "work-area",
        "Can a command write, rename, chmod and unlink in copy, HOME, TMPDIR and shared memory?",
        everywhere("must"),
        _work_area,
        (*_WORK_AREA, *((_SHARED_MEMORY,) if sys.platform == "linux" else ())),
    ),
    _positive("grandchild", "Can a command start programs that start programs?", _GRANDCHILD),
    _positive("kill-own-child", "Can a command end its own child?", _KILL_CHILD),
    _positive("fresh-program", "Can a program just made in TMPDIR be run?", _FRESH_PROGRAM),
    _positive("streams", "Is stdin at its end, and do the null and random devices work?", _STREAMS),
    Probe(
        "own-loopback",
        "Can a command talk to itself over 127.0.0.1?",
        everywhere("shown"),
        lambda bench: works(bench, (_LOOPBACK,)),
        (_LOOPBACK,),
    ),
    Probe(
        "environment",
        "Is the environment exactly the fixed one?",
        everywhere("must"),
        _exact_environment,
        (_ENVIRONMENT,),
    ),
    Probe("shows-copy", "Does the source's path show the copy?", everywhere("must"), _shows_copy, (_WHEREABOUTS,)),
    Probe("not-root", "Does a command run as someone other than root?", on_linux("where-offered"), _not_root),
)
