"""Who holds a round: recycled pids, stopped holders, jumping clocks, another boot."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firsthand.ledger import ClaimRefusedError, Ledger, Owner, rows
from firsthand.ledger.owner import boot_clock_ms
from firsthand.residues import ProcessIdentity, StateDirectory, identify
from firsthand.residues.identity import own_identity
from ledger.desk import asked, judged, python

TESTS = str(Path(__file__).parents[1])

HOLDER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from firsthand.errors import FirsthandError
from firsthand.ledger import Ledger
from firsthand.residues import StateDirectory
from ledger.desk import asked
with Ledger.open(StateDirectory.open(Path(sys.argv[1]))) as ledger:
    claim = ledger.claim(asked(lease_s=float(sys.argv[3])))
    ledger.dispatched(claim)
    print(claim.nonce, flush=True)
    sys.stdin.readline()
    try:
        ledger.seal(claim, evidence_digest="d" * 64, evidence_name="late.json", verdict="approved")
        ledger.end(claim, "approved", "")
        print("ended", flush=True)
    except FirsthandError as error:
        print(type(error).__name__, error.code, flush=True)
"""


def holder(state: StateDirectory, lease_s: float = 600) -> subprocess.Popen[str]:
    """Another process with a dispatched round."""
    process = python(HOLDER, str(state.path), TESTS, str(lease_s))
    assert process.stdout is not None
    assert len(process.stdout.readline().strip()) == 64
    return process


def resumed(process: subprocess.Popen[str]) -> str:
    return process.communicate("\n", timeout=60)[0].strip()


def latest_state(ledger: Ledger) -> str:
    return ledger.rounds("run-1")[-1].facts.state


def test_a_living_holder_holds(state: StateDirectory, ledger: Ledger) -> None:
    process = holder(state)
    assert latest_state(ledger) == "dispatched"
    with pytest.raises(ClaimRefusedError) as caught:
        ledger.claim(asked())
    assert caught.value.code == "round_taken"
    assert resumed(process) == "ended"
    assert latest_state(ledger) == "approved"


@pytest.mark.parametrize("collected", [True, False])
def test_a_killed_holder_leaves_an_unknown_round(state: StateDirectory, ledger: Ledger, collected: bool) -> None:
    process = holder(state)
    process.kill()
    if collected:
        process.wait()
    else:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # ended, and its pid still there
    assert latest_state(ledger) == "unknown"
    with pytest.raises(ClaimRefusedError) as caught:
        ledger.claim(asked())
    assert caught.value.code == "round_unknown"
    ledger.recover("run-1", "final", 1, closed_as="failed", reason="it was killed")
    assert ledger.claim(asked()).round == 2
    process.communicate()


def test_a_stopped_holder_that_comes_back_late_is_fenced(state: StateDirectory, ledger: Ledger) -> None:
    process = holder(state, lease_s=0)
    process.send_signal(signal.SIGSTOP)
    assert latest_state(ledger) == "unknown"  # it lives, and its lease is over
    ledger.recover("run-1", "final", 1, closed_as="abandoned", reason="stopped past its budget")
    second = ledger.claim(asked())
    judged(ledger, second, "rejected", "review_rejected")
    process.send_signal(signal.SIGCONT)
    assert resumed(process) == "FencedError round_unknown"
    first, other = ledger.rounds("run-1")
    assert (first.facts.state, first.facts.verdict, first.evidence_name) == ("abandoned", None, None)
    assert other.facts.state == "rejected"


def test_whoever_asks_for_the_round_of_a_stopped_holder_fences_it(state: StateDirectory, ledger: Ledger) -> None:
    process = holder(state, lease_s=0)
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(ClaimRefusedError) as caught:
        ledger.claim(asked())
    assert caught.value.code == "round_unknown"
    process.send_signal(signal.SIGCONT)
    assert resumed(process) == "FencedError round_unknown"
    assert latest_state(ledger) == "unknown"


def test_a_late_holder_that_nobody_missed_may_end_its_round(state: StateDirectory, ledger: Ledger) -> None:
    process = holder(state, lease_s=0)
    assert latest_state(ledger) == "unknown"
    assert resumed(process) == "ended"
    assert latest_state(ledger) == "approved"


def me(**changes: object) -> Owner:
    fields = {name: changes.pop(name) for name in ("pid", "start", "boot") if name in changes}
    identity = dataclasses.replace(own_identity(), **fields)  # type: ignore[arg-type] # one field at a time
    return Owner(identity, boot_clock_ms() + 60_000)


def test_a_recycled_pid_is_told_apart() -> None:
    assert me().holds()
    assert not me(start="1").holds()
    assert not me(boot="another boot").holds()
    assert not me(pid=2**22 + 1).holds()
    assert not Owner(own_identity(), boot_clock_ms() - 1).holds()


def test_a_recycled_pid_does_not_hold_a_round(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The round's holder had the pid of this living process, and started earlier."""
    recycled = dataclasses.replace(own_identity(), start="1")
    monkeypatch.setattr(rows, "own_identity", lambda: recycled)
    ledger.claim(asked())
    assert identify(recycled.pid) is not None
    assert latest_state(ledger) == "unknown"
    ledger.recover("run-1", "final", 1, closed_as="failed", reason="its process is gone")


def test_where_the_platform_says_no_start_the_lease_alone_decides() -> None:
    nameless = ProcessIdentity(pid=2**22 + 1, start="", boot=own_identity().boot)
    assert Owner(nameless, boot_clock_ms() + 60_000).holds()
    assert not Owner(nameless, boot_clock_ms() - 1).holds()


@pytest.mark.parametrize("jump_s", [-7200, 7200])
def test_a_jump_of_the_clock_neither_frees_nor_holds(
    state: StateDirectory, ledger: Ledger, jump_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    living = holder(state)
    ledger.claim(asked(stage="root-cause", lease_s=0))
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + jump_s)
    monkeypatch.setattr(time, "time_ns", lambda: int((now + jump_s) * 1e9))
    states = {one.facts.stage: one.facts.state for one in ledger.rounds("run-1")}
    assert states == {"final": "dispatched", "root-cause": "unknown"}
    assert resumed(living) == "ended"


@pytest.mark.parametrize("jump_s", [-7200, 7200])
def test_order_is_by_sequence_number(ledger: Ledger, jump_s: int, monkeypatch: pytest.MonkeyPatch) -> None:
    judged(ledger, ledger.claim(asked()), "blocked", "review_blocked")
    told = {1: "2026-01-01T12:00:00Z", 2: "2026-01-01T10:00:00Z" if jump_s < 0 else "2026-01-01T14:00:00Z"}
    monkeypatch.setattr(rows, "now", lambda: told[2])
    judged(ledger, ledger.claim(asked()), "approved")
    assert [one.facts.state for one in ledger.rounds("run-1")] == ["blocked", "approved"]
    assert [entry.seq for entry in ledger.entries("run-1")] == list(range(1, 12))


def test_the_boot_clock_is_none_that_can_be_set() -> None:
    assert not time.get_clock_info("monotonic").adjustable
    if sys.platform == "linux":
        before = boot_clock_ms()
        assert before <= time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000 < before + 10_000
