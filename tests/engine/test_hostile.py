"""Checks that misbehave, through the command line: each ends in its bound, is judged rightly, and leaves nothing."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path
from typing import Any

import pytest

from e2e.program import Program, carrying
from e2e.project import PYTHON, Project
from firsthand.evidence.storing import read_sealed
from firsthand.evidence.verifying import verify

ALLOWANCE_MS = 2000

CLEAN = """
set -e
test "$(ls -A)" = note.txt
test "$(cat note.txt)" = "a note"
test -z "$(find "$HOME" "$TMPDIR" /dev/shm -path "$PWD" -prune -o ! -type d -print)"
for entry in /proc/[0-9]*; do
    words=$(tr '\\0' ' ' <"$entry/cmdline" 2>/dev/null) || continue
    case $words in sleep*|yes*) echo "still there: $words"; exit 9;; esac
done
"""
"""What a check finds that runs after another: the registered file and nothing else."""

RESISTING = """
mkdir -p a/b c; touch a/b/file; chmod 000 a/b; chmod 000 a; chmod 555 c; mkfifo p; ln -s / l
deep=$(printf 'd/%.0s' $(seq 600)); mkdir -p $deep; touch $deep/file; chmod 000 $deep; chmod 111 d
"""

# Name, script (`{mark}` makes its processes recognisable), status, causes.
GROUPS = (
    (
        ("flood", "yes {mark}", "failed", {"output-limit"}),
        ("flood-of-errors", "yes {mark} >&2", "failed", {"output-limit"}),
        ("fork-storm", "while :; do sleep {mark} & done", "failed", {"exit-nonzero", "timed-out"}),
        ("ignores-signals", "trap '' TERM INT HUP QUIT TSTP; while :; do sleep {mark}; done", "failed", {"timed-out"}),
    ),
    (
        (
            "daemonises",
            "(setsid setsid sleep {mark} >/dev/null 2>&1 </dev/null &) ; (setsid sleep {mark} &)",
            "passed",
            {"exit-zero"},
        ),
        (
            "fills-the-copy",
            "for n in 1 2 3; do fallocate -l 500M file-$n; done; sleep {mark}",
            "failed",
            {"output-limit"},
        ),
        (
            "fills-home-and-the-rest",
            "for f in $HOME $TMPDIR /dev/shm; do for n in 1 2 3; do fallocate -l 400M $f/$n; done; done; exit 5",
            "failed",
            {"exit-nonzero"},
        ),
        (
            "leaves-trees-that-resist",
            RESISTING,
            "passed",
            {"exit-zero"},
        ),
    ),
)


# Only checks of the first group reach their deadline; those of the second must have time for their work.
@pytest.mark.parametrize(("group", "timeout_ms"), [(GROUPS[0], 2000), (GROUPS[1], 20_000)], ids=["greedy", "sticky"])
def test_a_hostile_check_ends_in_its_bound_is_judged_rightly_and_leaves_nothing(
    group: tuple[tuple[str, str, str, set[str]], ...],
    timeout_ms: int,
    program: Program,
    project: Project,
    tmp_path: Path,
    tree: Any,
) -> None:
    mark = str(10**9 + secrets.randbelow(10**9))
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    scripts: list[tuple[str, str]] = []
    for name, script, _, _ in group:
        scripts += [(name, script.replace("{mark}", mark)), (f"after-{name}", CLEAN)]
    project.shell(*scripts, timeoutMs=timeout_ms)
    before = tree(project.root)
    begun = time.monotonic()
    answer = program("check", "--json", cwd=project.root, TMPDIR=str(temporary))
    took_s = time.monotonic() - begun
    checks = {check["id"]: check for check in answer.json["checks"]}
    for name, _, status, causes in group:
        assert checks[name]["status"] == status, checks[name]
        assert checks[name]["cause"] in causes, checks[name]
        assert checks[name]["durationMs"] <= timeout_ms + ALLOWANCE_MS, checks[name]
        after = checks[f"after-{name}"]
        assert (after["status"], after["cause"]) == ("passed", "exit-zero"), f"{name}: {answer.err}"
    assert {check["cleanup"] for check in checks.values()} == {"complete"}
    assert answer.status == (1 if any(status == "failed" for _, _, status, _ in group) else 0)
    assert took_s < len(group) * (timeout_ms + ALLOWANCE_MS) / 1000 + 20
    if "daemonises" in checks:
        assert checks["daemonises"]["leftovers"] == 2
    assert carrying(mark) == []
    assert program.sessions() == []
    assert os.listdir(temporary) == []
    assert tree(project.root) == before
    verified = verify(read_sealed(Path(answer.json["evidence"])), root=project.root)
    assert (verified.valid, verified.stale) == (True, False), verified.problems


DRIFTS = (
    ("more bytes", "echo more >> note.txt"),
    ("another mode", "chmod 600 note.txt"),
    ("removed", "rm note.txt"),
    ("a link to itself elsewhere", "cp note.txt $TMPDIR/n; mv note.txt other; ln -s other note.txt"),
    ("a folder", "rm note.txt; mkdir note.txt"),
    ("a pipe", "rm note.txt; mkfifo note.txt"),
    ("a missing one is there", "touch planned.txt"),
    ("a missing one is a dangling link", "ln -s absent planned.txt"),
)


@pytest.mark.parametrize(("what", "script"), DRIFTS, ids=[what for what, _ in DRIFTS])
def test_a_check_that_changes_what_is_registered_is_drift(
    what: str, script: str, program: Program, project: Project
) -> None:
    scripts = [("changes", f"umask 022; {script}"), ("after", "exit 0")]
    project.shell(*scripts, files=["note.txt", "planned.txt"])
    answer = program("check", "--json", cwd=project.root)
    assert (answer.status, answer.json["code"]) == (1, "review_verification_copy_drift"), answer
    assert answer.json["status"] == "failed"
    # What came before still stands in the records; what would have come after never ran.
    assert [check["id"] for check in answer.json["checks"]] == ["changes"]
    assert (project.root / "note.txt").read_text() == "a note\n"
    assert not (project.root / "planned.txt").exists()
    assert program.sessions() == []
    verified = verify(read_sealed(Path(answer.json["evidence"])), root=project.root)
    assert verified.valid, verified.problems


@pytest.mark.parametrize(
    ("what", "text", "cause"),
    [
        ("no tests", "import unittest\n", "no-tests"),
        (
            "all skipped",
            "import unittest\nclass A(unittest.TestCase):\n    @unittest.skip('x')\n    def test_a(self): pass\n",
            "all-skipped",
        ),
        (
            "ended early",
            "import os, unittest\nclass A(unittest.TestCase):\n    def test_a(self): os._exit(0)\n",
            "ended-early",
        ),
    ],
)
def test_green_without_tests_is_unknown(what: str, text: str, cause: str, program: Program, project: Project) -> None:
    project.write("test_it.py", text)
    project.define(("tests", [PYTHON, "-m", "unittest", "test_it"]), files=["test_it.py"])
    answer = program("check", "--json", cwd=project.root)
    assert (answer.status, answer.json["code"]) == (4, "check_inconclusive")
    (check,) = answer.json["checks"]
    assert (check["status"], check["cause"]) == ("unknown", cause)
    assert check["outcome"] == {"kind": "exited", "exitCode": 0}
