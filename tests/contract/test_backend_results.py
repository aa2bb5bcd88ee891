"""Requests and results: what is handed in arrives exactly, what happened is told exactly."""

from __future__ import annotations

import hashlib
import json
import os
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firsthand.isolation.interface import Available, Request

_ECHO = (
    "import sys, json; sys.stdout.write(json.dumps([a.encode('utf-8', 'surrogateescape').hex() for a in sys.argv[1:]]))"
)


def ended(result: Any) -> tuple[str, int | None, int | None]:
    return result.outcome.kind, result.outcome.exit_code, result.outcome.signal


@pytest.mark.parametrize("code", [0, 1, 2, 65, 71, 101, 125, 126, 127, 128, 137, 143, 255])
def test_every_exit_code_is_a_commands_own(shared: Any, code: int) -> None:
    assert ended(shared.sh(f"exit {code}")) == ("exited", code, None)


@pytest.mark.parametrize(("name", "number"), [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("ABRT", 6)])
def test_a_signal_is_told_as_a_signal(shared: Any, name: str, number: int) -> None:
    assert ended(shared.sh(f"kill -{name} $$")) == ("signalled", None, number)


@pytest.mark.parametrize(
    ("name", "content", "mode"),
    [
        ("absent", None, 0),
        ("not-executable", b"#!/bin/sh\n", 0o644),
        ("no-interpreter", b"#!/nowhere/sh\n", 0o755),
        ("empty-folder", "folder", 0o755),
    ],
)
def test_what_cannot_be_executed_could_not_start(shared: Any, name: str, content: Any, mode: int) -> None:
    path = shared.copy / name
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
        path.chmod(mode)
    shown = next(
        place
        for place in (shared.shown_at, shared.copy)
        if shared.sh(f"test -e {place}/note.txt").outcome.exit_code == 0
    )
    outcome = shared.run([f"{shown}/{name}"]).outcome
    assert (outcome.kind, outcome.exit_code) == ("could-not-start", None)
    assert outcome.detail


def test_streams_come_apart_byte_for_byte(shared: Any) -> None:
    out, err = b"\x00\xff\xfe out \r\n\x1b[31m", b"err \xc3\x28 \xed\xa0\x80"
    result = shared.python(f"import os; os.write(1, {out!r}); os.write(2, {err!r})")
    for captured, expected in ((result.stdout, out), (result.stderr, err)):
        assert captured.data == expected
        assert captured.total_bytes == len(expected)
        assert captured.sha256 == hashlib.sha256(expected).hexdigest()


def test_silence_is_empty(shared: Any) -> None:
    result = shared.sh("true")
    for captured in (result.stdout, result.stderr):
        assert (captured.data, captured.total_bytes) == (b"", 0)
        assert captured.sha256 == hashlib.sha256(b"").hexdigest()


ARGUMENTS = [
    [],
    [""],
    ["a b", "'", '"', "$HOME", "`id`", ";", "|", "&&", "*"],
    ["--", "-c", "--help", "-"],
    ["line\nbreak", "tab\t", "\\", "%s", "{}", "é", "漢字", "\u2028"],
    ["x" * 100_000],
]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=range(len(ARGUMENTS)))
def test_arguments_arrive_as_they_are(shared: Any, arguments: list[str]) -> None:
    seen = json.loads(shared.python(_ECHO, *arguments).stdout.data)
    assert [bytes.fromhex(one).decode() for one in seen] == arguments


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20), max_size=5))
def test_any_arguments_arrive_as_they_are(shared: Any, arguments: list[str]) -> None:
    seen = json.loads(shared.python(_ECHO, *arguments).stdout.data)
    assert [bytes.fromhex(one).decode() for one in seen] == arguments


def test_the_working_folder_is_below_the_copy(shared: Any) -> None:
    assert shared.sh("cat deep.txt", cwd="below").stdout.data == b"deep\n"
    assert shared.sh("cat note.txt", cwd=".").stdout.data == b"note\n"


def test_a_missing_working_folder_is_no_failed_command(shared: Any) -> None:
    outcome = shared.sh("exit 0", cwd="absent").outcome
    assert outcome.kind in {"could-not-start", "sandbox-failed"}
    assert outcome.exit_code is None


def test_added_variables_arrive_and_nothing_else_does(shared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAKING", "from the host")
    result = shared.sh('printf "%s|%s|%s" "$REPORT" "$LEAKING" "$TZ"', REPORT="a 'b' \"c\"\n=d")
    assert result.stdout.data == b"a 'b' \"c\"\n=d||UTC"


def test_standard_input_is_at_its_end(shared: Any) -> None:
    started = time.monotonic()
    assert shared.sh("cat; echo end", timeout_s=10).stdout.data == b"end\n"
    assert time.monotonic() - started < 5


def test_the_duration_is_the_commands(shared: Any) -> None:
    assert 300 <= shared.sh("sleep 0.3").outcome.duration_ms < 3000


STUBBORN = [
    "sleep 60 & wait",
    "trap '' TERM INT HUP QUIT; sleep 60 & wait; sleep 60",
    "echo kept; exec sleep 60",
    "while :; do :; done",
]


@pytest.mark.parametrize("script", STUBBORN)
def test_at_the_deadline_everything_ends(shared: Any, script: str, available: Available) -> None:
    started = time.monotonic()
    result = shared.sh(script, timeout_s=0.4)
    assert time.monotonic() - started < 2.4
    assert ended(result) == ("timed-out", None, None)
    assert result.outcome.cleanup in ({"complete"} if available.ends_all else {"complete", "may-linger"})
    if script.startswith("echo"):
        assert result.stdout.data == b"kept\n"


@pytest.mark.skipif(not os.path.exists("/usr/bin/setsid"), reason="there is no setsid command here")
@pytest.mark.parametrize("script", ["setsid sleep 60 & wait", "setsid sleep 60 & exec sleep 60"])
def test_a_session_of_its_own_does_not_outlast_the_deadline(shared: Any, script: str) -> None:
    started = time.monotonic()
    result = shared.sh(script, timeout_s=0.4)
    assert time.monotonic() - started < 2.4
    assert result.outcome.kind == "timed-out"


@pytest.mark.skipif(not os.path.exists("/usr/bin/setsid"), reason="there is no setsid command here")
def test_a_leftover_that_holds_the_pipes_does_not_hold_the_host(shared: Any, available: Available) -> None:
    started = time.monotonic()
    result = shared.sh("setsid sleep 60 & echo out; exit 0", timeout_s=20)
    assert time.monotonic() - started < 5
    assert ended(result) == ("exited", 0, None)
    assert result.stdout.data == b"out\n"
    if available.ends_all:
        assert (result.outcome.cleanup, result.outcome.leftovers) == ("complete", 1)


def test_a_command_with_a_live_deadline_is_not_late(shared: Any) -> None:
    assert ended(shared.enclosure.run(Request(("/bin/sh", "-c", "exit 4"), "/bin/sh", timeout_s=300.0))) == (
        "exited",
        4,
        None,
    )
