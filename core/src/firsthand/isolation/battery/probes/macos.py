"""Probes of what macOS alone has. None has run on a Mac yet where this was written: the Mac that runs them decides."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import unicodedata
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from firsthand.isolation.battery import traces
from firsthand.isolation.battery.bench import Bench
from firsthand.isolation.battery.judge import stopped, works
from firsthand.isolation.battery.probe import REFUSED_FILE, Attempt, Finding, Line, Probe, Side, Weight
from firsthand.isolation.battery.stage import Stage

_SANDBOX_EXEC = "/usr/bin/sandbox-exec"
_PATIENCE_S = 10.0
_DATA_VOLUME = "/System/Volumes/Data"
_REFUSED = REFUSED_FILE | {"ESRCH", "EINVAL"}
"""A process that is hidden rather than refused counts as refused too: the same call works in the control."""

_NO_OUTPUT = frozenset({"ENODATA"})
_SERVICES = (
    "com.apple.SecurityServer",
    "com.apple.coreservices.launchservicesd",
    "com.apple.cfprefsd.daemon",
    "com.apple.logd",
    "com.apple.pasteboard.1",
)
_BROKEN_PROFILES = {
    "no such operation": "(version 1)(deny default)(allow file-reed*)",
    "unset parameter": '(version 1)(allow default)(deny file-read* (subpath (param "UNSET")))',
    "not closed": "(version 1)(allow default",
}


def on_macos(weight: Weight) -> Mapping[str, Weight]:
    """Asked on macOS only."""
    return MappingProxyType({"darwin": weight})


def _by_another_name(word: str, name: str, other: Callable[[str], str]) -> Attempt:
    """Read a canary through another spelling of its path."""

    def detail(stage: Stage, side: Side) -> Mapping[str, Any] | None:  # noqa: ARG001 - a callback
        path = stage.canaries.get(name)
        return None if path is None else {"path": other(path)}

    return _reading(word, name, detail)


def _reading(word: str, name: str, detail: Callable[[Stage, Side], Mapping[str, Any] | None]) -> Attempt:
    def reached(stage: Stage, side: Side, line: Line) -> bool:  # noqa: ARG001 - a callback
        return line.get("saw") == stage.tokens.get(name, "")

    # A volume that tells spellings apart has no such second name.
    return Attempt(word, "files.read", detail, reached, unoffered=frozenset({"ENOENT"}))


def _other_case(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, name.upper())


def _by_number(path: str) -> str:
    found = os.stat(path)
    return f"/.vol/{found.st_dev}/{found.st_ino}"


def _decomposed(stage: Stage, side: Side) -> Mapping[str, Any]:  # noqa: ARG001 - a callback
    composed = unicodedata.normalize("NFC", str(stage.source.parent / "sibling" / "caf\u00e9.txt"))
    if "spelling" not in stage.canaries:
        stage.plant("spelling", composed)
    return {"path": unicodedata.normalize("NFD", composed)}


def _on_holder(word: str, call: str, *, unoffered: frozenset[str] = frozenset(), **more: str) -> Attempt:
    def reached(stage: Stage, side: Side, line: Line) -> bool:  # noqa: ARG001 - a callback
        return bool(line.get("did")) and not str(line.get("saw")).startswith("not ")

    return Attempt(
        word, call, lambda stage, side: {"pid": stage.holders[side].pid, **more}, reached, _REFUSED, unoffered
    )


def _held_seen(stage: Stage, side: Side, line: Line) -> bool:
    if not line.get("did"):
        return False
    held = {stage.tokens[f"held-argument-{side}"], stage.tokens[f"held-environment-{side}"]}
    seen = set(json.loads(line["saw"]))
    # Inside, to be told anything at all of that process is too much.
    return True if side == "inside" else held <= seen


def _service(name: str) -> Attempt:
    return Attempt(
        name,
        "macos.look_up",
        lambda *_: {"service": name},
        refused=REFUSED_FILE,
        unoffered=frozenset({"ENOENT", "EPERM"}),
    )


def _program(word: str, *argv: str, lines: int, controlled: bool = True) -> Attempt:
    return Attempt(
        word,
        "macos.program",
        lambda *_: {"argv": list(argv), "lines": lines},
        refused=REFUSED_FILE | _NO_OUTPUT,
        unoffered=_NO_OUTPUT | {"ENOENT"},
        controlled=controlled,
    )


def _cloned_out(stage: Stage, side: Side, line: Line) -> bool:  # noqa: ARG001 - the host's view alone decides
    return stage.changed(side, "new-clone")


def _cloned_in(stage: Stage, side: Side, line: Line) -> bool:  # noqa: ARG001 - a callback
    return line.get("saw") == stage.tokens["sibling"]


_DATA = tuple(
    _by_another_name(f"data-volume-{name}", name, lambda path: _DATA_VOLUME + path) for name in ("home", "sibling")
)
_SPELLINGS = (
    _by_another_name("other-case", "home", _other_case),
    _by_another_name("by-number", "sibling", _by_number),
    _reading("decomposed", "spelling", _decomposed),
)
_ARGUMENTS = Attempt(
    "process-arguments",
    "macos.arguments",
    lambda stage, side: {"pid": stage.holders[side].pid},
    _held_seen,
    _REFUSED,
)
_HOST_ARGUMENTS = Attempt(
    "host-arguments",
    "macos.arguments",
    lambda *_: {"pid": os.getpid()},
    lambda _s, _d, line: bool(line.get("did")),
    _REFUSED,
)
_TABLE = _on_holder("process-table", "macos.table")
_INFORMATION = _on_holder("process-information", "macos.information")
_LIST = _on_holder("process-list", "macos.list_pids")
_TASKS = tuple(
    _on_holder(ask, "macos.task", unoffered=frozenset({"EPERM"}), ask=ask)
    for ask in ("task_name_for_pid", "task_for_pid")
)
_LOOK_UPS = tuple(map(_service, _SERVICES))
_PS = Attempt(
    "ps",
    "macos.program",
    lambda stage, side: {"argv": ["/bin/ps", "-axo", "pid="], "lines": 1, "find": str(stage.holders[side].pid)},
    refused=REFUSED_FILE | _NO_OUTPUT,
    unoffered=_NO_OUTPUT,
)
_PROGRAMS = (
    _PS,
    _program("pbpaste", "/usr/bin/pbpaste", lines=1),
    _program("launchctl", "/bin/launchctl", "list", lines=2),
    # A control of these would open a window on the user's screen. They print nothing when they succeed.
    _program("open", "/usr/bin/open", "-g", "-j", "marker.txt", lines=0, controlled=False),
    _program(
        "osascript", "/usr/bin/osascript", "-e", 'tell application "Finder" to get name', lines=0, controlled=False
    ),
)
_TERMINAL = Attempt("new-terminal", "macos.new_terminal", refused=REFUSED_FILE | {"ENXIO"})
_LISTEN = Attempt("listen", "macos.listen", refused=frozenset({"EPERM", "EACCES"}))
_RESOLVER = Attempt(
    "resolver",
    "macos.resolver",
    lambda *_: {"path": "/var/run/mDNSResponder"},
    refused=REFUSED_FILE,
    unoffered=frozenset({"ENOENT", "ECONNREFUSED"}),
)
_NO_CLONES = frozenset({"ENOTSUP", "EXDEV"})
_CLONES = (
    Attempt(
        "clone-out",
        "macos.clone_out",
        lambda stage, side: {"own": "own-clone-out", "path": stage.target(side, "new-clone")},
        _cloned_out,
        unoffered=_NO_CLONES,
    ),
    Attempt(
        "clone-in",
        "macos.clone_in",
        lambda stage, _: {"own": "own-clone-in", "path": stage.canaries["sibling"]},
        _cloned_in,
        unoffered=_NO_CLONES,
    ),
)
_CORES = Attempt(
    "hw.ncpu",
    "macos.kernel_value",
    lambda *_: {"name": "hw.ncpu"},
    lambda _stage, _side, line: bool(line.get("did")) and line.get("saw") == str(os.cpu_count()),
    controlled=False,
)


def _temporary_folders(bench: Bench) -> Finding:
    """A canary where the system keeps this user's temporary files, which is where most secrets in transit lie."""
    path = os.path.join(os.path.realpath(tempfile.gettempdir()), traces.fresh_name())
    bench.stage.plant("temporary", path)
    try:
        call = {"id": "temporary", "call": "files.read", "path": path}
        inside = bench.run_calls("temporary", [call], timeout_s=_PATIENCE_S).lines.get("temporary", {})
        outside = bench.control_calls([call]).get("temporary", {})
    finally:
        os.unlink(path)
    token = bench.stage.tokens["temporary"]
    control = "worked" if outside.get("saw") == token else "did not work"
    if inside.get("saw") == token:
        return Finding("failed", "reached", control)
    if inside.get("errno") not in REFUSED_FILE:
        return Finding("not-run", str(inside.get("error", "no report")), control)
    return Finding("passed" if control == "worked" else "no-control", str(inside["errno"]), control)


def _nested(bench: Bench) -> Finding:
    """A check that itself calls sandbox-exec: its failure is its own, and an open profile inside opens nothing."""
    argv = (_SANDBOX_EXEC, "-p", "(version 1)(allow default)", "/bin/cat", bench.stage.canaries["sibling"])
    ran = bench.run(argv, timeout_s=_PATIENCE_S)
    control = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, env={}, timeout=_PATIENCE_S, check=False
    )
    token = bench.stage.tokens["sibling"].encode()
    worked = "worked" if token in control.stdout else f"ended with {control.returncode}"
    if ran.result is None:
        return Finding("not-run", ran.told(), worked)
    if token in ran.result.stdout.data:
        return Finding("failed", f"the canary was read; {ran.told()}", worked)
    own_failure = ran.result.outcome.kind == "exited" and ran.result.outcome.exit_code != 0
    if not own_failure:
        return Finding("failed", f"not told as the command's own failure: {ran.told()}", worked)
    return Finding("passed" if worked == "worked" else "no-control", ran.told(), worked)


def _broken_profile(bench: Bench) -> Finding:  # noqa: ARG001 - asks the system, not the backend
    """Whether this system runs nothing under a profile that it can't compile; a backend by profile rests on that."""
    said = []
    for word, profile in _BROKEN_PROFILES.items():
        done = subprocess.run(
            (_SANDBOX_EXEC, "-p", profile, "/bin/sh", "-c", "echo ran"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={},
            timeout=_PATIENCE_S,
            check=False,
        )
        said.append(f"{word}: {done.returncode}")
        if b"ran" in done.stdout or done.returncode == 0:
            return Finding("failed", f"{'; '.join(said)}; {'it ran' if done.stdout else 'no error'}")
    return Finding("passed", "; ".join(said))


def _group(probe: str, question: str, weight: Weight, *attempts: Attempt) -> Probe:
    return Probe(probe, question, on_macos(weight), lambda bench: stopped(bench, attempts), attempts)


PROBES = (
    Probe(
        "kernel-values",
        "Can a command read the number of processors, without which Node can't start?",
        on_macos("must"),
        lambda bench: works(bench, (_CORES,)),
        (_CORES,),
    ),
    _group("data-volume", "Are canaries unreadable under the volume's second name?", "must", *_DATA),
    _group(
        "other-spellings",
        "Are canaries unreadable by other case, by file number, by another Unicode form?",
        "where-offered",
        *_SPELLINGS,
    ),
    Probe(
        "temporary-folders",
        "Is a canary in the user's own temporary folder unreadable?",
        on_macos("must"),
        _temporary_folders,
    ),
    _group(
        "process-arguments",
        "Are arguments and environments of other processes out of sight?",
        "must",
        _ARGUMENTS,
        _HOST_ARGUMENTS,
    ),
    _group("process-information", "Is nothing told of another process's state?", "must", _INFORMATION),
    _group("process-table", "Is the kernel's table of processes out of sight?", "must", _TABLE),
    _group("process-list", "Is libproc's list of processes out of sight?", "shown", _LIST),
    _group("task-ports", "Can no port of another process be had?", "where-offered", *_TASKS),
    _group("mach-services", "Can no service of the system be looked up?", "must", *_LOOK_UPS),
    _group(
        "system-programs",
        "Do ps, pbpaste, launchctl, open and osascript get nothing out of the system?",
        "where-offered",
        *_PROGRAMS,
    ),
    _group("new-terminal", "Can no pseudo-terminal be made?", "must", _TERMINAL),
    _group("listen", "Can no port be listened on?", "must", _LISTEN),
    _group("resolver", "Is the system's resolver out of reach?", "where-offered", _RESOLVER),
    _group("clones", "Can no file be cloned over the border?", "where-offered", *_CLONES),
    Probe("nested-sandbox", "Is a failing sandbox-exec inside the command's own failure?", on_macos("must"), _nested),
    Probe("broken-profile", "Does a profile that does not compile run nothing?", on_macos("must"), _broken_profile),
)
