"""Negative probes: doors of the kernel that no check needs (Linux)."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from typing import Any

from firsthand.isolation.battery.judge import stopped, works
from firsthand.isolation.battery.probe import REFUSED_CALL, REFUSED_FILE, Attempt, Line, Probe, Side, on_linux
from firsthand.isolation.battery.stage import Stage

_NOT_OFFERED = frozenset({"EPERM", "EACCES", "ENOSYS", "ENOSPC", "EINVAL", "EUSERS", "EOPNOTSUPP", "ENOENT", "EROFS"})
_REFUSED_NAMESPACE = REFUSED_CALL | {"ENOSPC", "EUSERS", "EINVAL"}
_NOBODY = 65534
_CORE_PATTERN = "/proc/sys/kernel/core_pattern"
_SYSTEM_FILES = (_CORE_PATTERN, "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper")


def _door(word: str, call: str, refused: frozenset[str] = REFUSED_CALL, **detail: Any) -> Attempt:  # noqa: ANN401
    return Attempt(word, call, lambda *_: detail, refused=refused, unoffered=_NOT_OFFERED)


_NAMESPACES = (
    *(
        _door(f"unshare-{'-'.join(kinds)}", "kernel.unshare", _REFUSED_NAMESPACE, kinds=list(kinds))
        for kinds in (("user",), ("user", "mount"), ("mount",), ("pid",), ("net",))
    ),
    *(_door(f"{way}-user", "kernel.clone", _REFUSED_NAMESPACE, way=way) for way in ("clone", "clone3")),
)
_MOUNT = Attempt(
    "mount",
    "kernel.mount",
    lambda *_: {"own": "mount-point"},
    refused=REFUSED_CALL,
    # An unconfined mount would be there for the whole machine.
    controlled=False,
)
_MOUNT_API = tuple(_door(way, "kernel.mount_api", way=way) for way in ("fsopen", "open_tree"))
_RING = _door("io_uring", "kernel.io_uring", REFUSED_CALL | {"ENOMEM"})
_KEYS = tuple(_door(way, "kernel.keys", way=way) for way in ("add_key", "keyctl"))
_BPF = _door("bpf", "kernel.bpf")
_PERF = _door("perf_event_open", "kernel.perf", REFUSED_CALL | {"ENOENT"})
_SYSTEM = tuple(
    Attempt(
        f"open {path}",
        "files.open_to_write",
        lambda *_, path=path: {"path": path},
        refused=REFUSED_FILE,
        unoffered=_NOT_OFFERED,
    )
    for path in _SYSTEM_FILES
)
_NO_NEW = Attempt(
    "no-new-privileges",
    "kernel.no_new_privileges",
    reached=lambda _stage, _side, line: line.get("saw") == "can't gain",
    controlled=False,
)
_CAPABILITIES = Attempt(
    "capabilities", "kernel.capabilities", reached=lambda _stage, _side, line: line.get("saw") == "{}", controlled=False
)


def _set_id_program(stage: Stage, side: Side) -> Mapping[str, Any] | None:
    """A set-user-id copy of `id` that belongs to root. It prints a number and can do nothing else."""
    program = shutil.which("id", path="/usr/bin:/bin")
    if os.geteuid() != 0 or program is None or os.statvfs(stage.tools).f_flag & os.ST_NOSUID:
        return None
    path = stage.tools / "id"
    if not path.exists():
        shutil.copyfile(program, path)
        os.chmod(path, 0o755 | stat.S_ISUID)  # noqa: S103 - as said
    return {"program": str(path), **({"become": _NOBODY} if side == "control" else {})}


def _gained(stage: Stage, side: Side, line: Line) -> bool:  # noqa: ARG001 - a callback
    return line.get("saw") == "uid 0"


_SET_ID = Attempt("set-id-program", "kernel.gain", _set_id_program, _gained)


def _segment(stage: Stage, side: Side) -> Mapping[str, Any]:
    key = int(stage.nonce[:7], 16) << 1 | (side == "inside")
    return {"key": key, "remove": side == "control"}


def _segment_listed(stage: Stage, side: Side, line: Line) -> bool:
    """The host's list of segments; the control has looked at it before it removed its own at once."""
    if side == "control":
        return line.get("saw") == "listed"
    key = str(_segment(stage, side)["key"])
    try:
        with open("/proc/sysvipc/shm", encoding="ascii") as file:
            return any(row.split()[0] == key for row in file)
    except OSError:
        return False


_SEGMENT = Attempt("shared-segment", "kernel.shared_segment", _segment, _segment_listed, unoffered=_NOT_OFFERED)


def _any(probe: str, question: str, *attempts: Attempt) -> Probe:
    return Probe(probe, question, on_linux("where-offered"), lambda bench: stopped(bench, attempts), attempts)


PROBES = (
    _any("namespaces", "Can no new namespace be entered?", *_NAMESPACES),
    _any("mount", "Can nothing be mounted?", _MOUNT),
    _any("mount-api", "Can no file system or mount be opened?", *_MOUNT_API),
    _any("io_uring", "Is io_uring closed?", _RING),
    _any("keyrings", "Are the kernel's keyrings closed?", *_KEYS),
    _any("bpf", "Is bpf closed?", _BPF),
    _any("perf", "Is perf_event_open closed?", _PERF),
    _any("system-files", "Can nothing in /proc/sys, /proc/sysrq-trigger or /sys be opened for writing?", *_SYSTEM),
    _any("set-id-program", "Does a set-user-id program of root's gain nothing?", _SET_ID),
    _any("shared-segment", "Is System V shared memory apart from the host's?", _SEGMENT),
    Probe(
        "no-new-privileges",
        "Has the kernel been told that this process can never gain privileges?",
        on_linux("must"),
        lambda bench: works(bench, (_NO_NEW,)),
        (_NO_NEW,),
    ),
    Probe(
        "capabilities",
        "Does a command hold no capability?",
        on_linux("must"),
        lambda bench: works(bench, (_CAPABILITIES,)),
        (_CAPABILITIES,),
    ),
)
