"""Negative probes: nothing outside can be changed, judged by the host's look at the targets."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import Any

from firsthand.isolation.battery.bench import Bench
from firsthand.isolation.battery.judge import stopped
from firsthand.isolation.battery.probe import REFUSED_FILE, Attempt, Finding, Line, Probe, Side, everywhere, on_linux
from firsthand.isolation.battery.stage import Stage

_CLIMB = "../" * 64
_ACROSS = REFUSED_FILE | {"EXDEV", "ELOOP"}
_NO_SUCH_FEATURE = frozenset({"EOPNOTSUPP", "ENOTSUP", "EISDIR", "EROFS", "EACCES", "EPERM", "ENOENT"})


def _at(
    word: str,
    call: str,
    name: str,
    *,
    climb: bool = False,
    unoffered: frozenset[str] = frozenset(),
    **more: str | int,
) -> Attempt:
    """An attempt on one target of its side, judged by whether the target is as the host left it."""

    def detail(stage: Stage, side: Side) -> Mapping[str, Any]:
        path = stage.target(side, name)
        return {"path": _CLIMB + path.lstrip("/") if climb else path, **more}

    def reached(stage: Stage, side: Side, line: Line) -> bool:  # noqa: ARG001 - the host's view alone decides
        return stage.changed(side, name)

    return Attempt(word, call, detail, reached, _ACROSS, unoffered)


_OUTSIDE = (
    _at("create", "files.write", "new-absolute"),
    _at("overwrite", "files.write", "old-write"),
    _at("climb", "files.write", "new-climb", climb=True),
    _at("symlink", "files.write_by_symlink", "new-symlink", link="link-out"),
    # Where /dev/fd holds no folders there is nothing to climb out of.
    _at(
        "descriptor",
        "files.write_by_descriptor",
        "new-descriptor",
        climb=True,
        unoffered=frozenset({"ENOTDIR", "ENOENT"}),
    ),
    _at("chmod", "files.change_mode", "old-mode", mode=0o600),
)
_NAMES = (
    _at("rename-out", "files.rename_out", "new-rename", own="own-rename-out"),
    _at("rename-in", "files.rename_in", "old-rename-in", own="own-rename-in"),
    _at("link-out", "files.link_out", "new-link", own="own-link-out"),
    _at("link-in", "files.link_in", "old-link-in", own="own-link-in"),
)


def _in_tools(stage: Stage, side: Side) -> str:
    return str(stage.tools / f"new-{side}")


_ROOT = Attempt(
    "granted-root",
    "files.write",
    lambda stage, side: {"path": _in_tools(stage, side)},
    lambda stage, side, _: os.path.lexists(_in_tools(stage, side)),
)
_SYSTEM = tuple(
    Attempt(f"file in {path}", "files.unnamed", lambda *_, path=path: {"path": path}, unoffered=_NO_SUCH_FEATURE)
    for path in ("/", "/usr", "/etc", "/var")
)


def _bit_kept(stage: Stage, side: Side, line: Line) -> bool:  # noqa: ARG001 - a callback
    return line.get("saw") == "kept"


_SET_ID = Attempt("set-id-bit", "files.set_id", lambda *_: {"own": "own-set-id"}, _bit_kept)


def _rewrite(bench: Bench) -> Finding:
    """Exact bytes and mode on an ordinary file; no effect outside through a link, whatever the backend answers."""
    content = b"\xef\xbb\xbfa\r\nb\rc\xff\x00"
    copy, refusal = bench.rewrite("plain.txt", content, 0o640, {"plain.txt": b"before\n"})
    if refusal:
        return Finding("failed", f"an ordinary file was not rewritten: {refusal}")
    path = copy / "plain.txt"
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) != 0o640 or path.read_bytes() != content:
        return Finding("failed", f"an ordinary file was rewritten wrongly (mode {stat.S_IMODE(found.st_mode):o})")
    said = []
    for target, prepare, relative in (
        ("old-rewrite", {"plain.txt": bench.stage.target("inside", "old-rewrite")}, "plain.txt"),
        ("old-rewrite-below", {"below": bench.stage.targets["inside"]}, "below/old-rewrite-below"),
    ):
        _, refusal = bench.rewrite(relative, content, 0o640, prepare)
        if bench.stage.changed("inside", target):
            return Finding("failed", f"{relative} through a link changed a file outside")
        said.append(f"{relative} through a link: {'refused' if refusal else 'replaced'}, outside unchanged")
    return Finding("passed", "; ".join(("exact bytes and mode", *said)), _rewrite_control(bench))


def _rewrite_control(bench: Bench) -> str:
    """The careless way, which the links are there for."""
    link = bench.stage.workplace / "control" / "link.txt"
    link.symlink_to(bench.stage.target("control", "old-rewrite"))
    link.write_bytes(b"x")
    return "worked" if bench.stage.changed("control", "old-rewrite") else "did not work"


PROBES = (
    Probe(
        "write-outside",
        "Can nothing outside be written: by path, by .., by link, by descriptor, by chmod?",
        everywhere("must"),
        lambda bench: stopped(bench, _OUTSIDE),
        _OUTSIDE,
    ),
    Probe(
        "rename-and-link",
        "Can no file be moved or linked over the border?",
        everywhere("must"),
        lambda bench: stopped(bench, _NAMES),
        _NAMES,
    ),
    Probe(
        "write-root",
        "Is a granted root read-only?",
        everywhere("must"),
        lambda bench: stopped(bench, (_ROOT,)),
        (_ROOT,),
    ),
    Probe(
        "write-system",
        "Are the system's folders read-only?",
        on_linux("where-offered"),
        lambda bench: stopped(bench, _SYSTEM),
        _SYSTEM,
    ),
    Probe(
        "set-id-bit",
        "Is a set-user-id mark on an own file refused? (Harmless where nothing can be gained.)",
        everywhere("shown"),
        lambda bench: stopped(bench, (_SET_ID,)),
        (_SET_ID,),
    ),
    Probe("rewrite", "Does a rewrite give exact bytes and mode and follow no link?", everywhere("must"), _rewrite),
)
