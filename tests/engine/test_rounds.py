"""A round from claim to end, and every way in which it is cut short."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from engine.script import Script
from firsthand.engine.rounds import OpenRound, Reviewed, RoundError
from firsthand.errors import FirsthandError
from firsthand.evidence import seal
from firsthand.ledger import ClaimRefusedError, FencedError, Ledger, Round
from firsthand.rules import RoundState

KILLS = int(os.environ.get("FIRSTHAND_ROUND_KILLS", "12"))


def rounds(script: Script) -> tuple[Round, ...]:
    with Ledger.open(script.state) as ledger:
        return ledger.rounds(script.run_id)


@pytest.mark.parametrize("verdict", ["approved", "rejected", "blocked"])
def test_a_verdict_ends_its_round(script: Script, verdict: RoundState, tmp_path: Path) -> None:
    ended = script.review(verdict, out=tmp_path / "result.json")
    assert (ended.state, ended.number) == (verdict, 1)
    assert ended.path.parent == script.state.evidence
    assert ended.path.read_bytes() == (tmp_path / "result.json").read_bytes()
    (one,) = rounds(script)
    assert (one.facts.state, one.facts.code) == (verdict, ended.code)
    assert one.facts.evidence_digest == ended.sha256
    assert one.evidence_name == ended.path.name


def test_an_approval_that_the_rules_do_not_accept_is_none(script: Script) -> None:
    script.changes = {"voided": ("review_verification_source_drift",)}
    ended = script.review("approved")
    assert (ended.state, ended.code) == ("failed", "review_verification_source_drift")


def test_an_unclear_evidence_ends_unknown(script: Script) -> None:
    script.changes = {"voided": ("review_verification_cleanup_unknown",)}
    assert script.review("approved").state == "unknown"
    with pytest.raises(ClaimRefusedError):
        script.review()


def test_the_claim_is_on_the_disk_before_the_dispatch(script: Script) -> None:
    seen: list[tuple[RoundState, str]] = []

    def dispatch(opened: OpenRound) -> Reviewed:
        (one,) = rounds(script)
        seen.append((one.facts.state, one.facts.nonce))
        opened.dispatched()
        (one,) = rounds(script)
        seen.append((one.facts.state, one.facts.nonce))
        assert opened.nonce == one.facts.nonce
        return Reviewed(seal(script.evidence(opened)))

    script.review(dispatch=dispatch)
    assert [state for state, _ in seen] == ["claimed", "dispatched"]


@pytest.mark.parametrize(
    ("error", "raised", "code"),
    [
        (FirsthandError("no", next_step="no", code="no-auth"), FirsthandError, "no-auth"),
        (ValueError("oops"), RoundError, "round_unknown"),
        (KeyboardInterrupt(), KeyboardInterrupt, "round_unknown"),
        (SystemExit(1), SystemExit, "round_unknown"),
    ],
)
@pytest.mark.parametrize("begun", [False, True])
def test_a_failure_before_the_dispatch_is_clear_and_one_after_it_is_unknown(
    script: Script, error: BaseException, raised: type[BaseException], code: str, begun: bool
) -> None:
    def dispatch(opened: OpenRound) -> Reviewed:
        if begun:
            opened.dispatched()
        raise error

    with pytest.raises(raised):
        script.review(dispatch=dispatch)
    (one,) = rounds(script)
    assert (one.facts.state, one.facts.code) == ("unknown" if begun else "failed", code)
    assert list(script.state.evidence.iterdir()) == []
    if begun:
        with pytest.raises(ClaimRefusedError):
            script.review()
    else:
        assert script.review().number == 2  # used up, and nothing was sent


@pytest.mark.parametrize(
    "changes",
    [
        {"nonce": "0" * 64},
        {"round": 2},
        {"stage": "root-cause"},
        {"run_id": "other"},
        {"manifest_digest": "0" * 64},
        {"kind": "check"},
        {"code": "no-auth"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_evidence_of_anything_else_is_not_taken(script: Script, changes: dict[str, object]) -> None:
    script.changes = changes
    with pytest.raises(RoundError):
        script.review()
    (one,) = rounds(script)
    assert (one.facts.state, one.facts.evidence_digest) == ("unknown", None)
    assert list(script.state.evidence.iterdir()) == []


def test_garbage_is_not_taken(script: Script) -> None:
    def dispatch(opened: OpenRound) -> Reviewed:
        opened.dispatched()
        return Reviewed(b"{}")

    with pytest.raises(RoundError):
        script.review(dispatch=dispatch)


def test_the_dispatch_begins_once_however_often_it_is_said(script: Script) -> None:
    def dispatch(opened: OpenRound) -> Reviewed:
        opened.dispatched()
        opened.dispatched()
        return Reviewed(seal(script.evidence(opened)))

    assert script.review(dispatch=dispatch).state == "approved"
    with Ledger.open(script.state) as ledger:
        assert [entry.kind for entry in ledger.entries(script.run_id)].count("dispatched") == 1


def test_a_dispatch_that_never_said_so_is_not_taken(script: Script) -> None:
    with pytest.raises(FencedError):
        script.review(dispatch=lambda opened: Reviewed(seal(script.evidence(opened))))
    assert list(script.state.evidence.iterdir()) == []


def test_what_comes_after_the_round_was_taken_away_counts_for_nothing(script: Script) -> None:
    def dispatch(opened: OpenRound) -> Reviewed:
        opened.dispatched()
        with Ledger.open(script.state) as other, other._database.writing() as connection:
            connection.execute("UPDATE round SET fence = fence + 1")
        return Reviewed(seal(script.evidence(opened)))

    with pytest.raises(FencedError):
        script.review(dispatch=dispatch)
    assert list(script.state.evidence.iterdir()) == []


def test_the_same_bytes_are_not_asked_about_again_after_a_rejection(script: Script) -> None:
    script.review("rejected")
    with pytest.raises(ClaimRefusedError) as caught:
        script.review("approved")
    assert caught.value.code == "review_rejected"
    os.link(script.root / "src/value.py", script.root / "hard-link")
    with pytest.raises(ClaimRefusedError):
        script.review("approved")
    script.recover(reason="the requirement was misread")
    assert script.review("approved").number == 2


def test_registered_tests_that_changed_between_stages_are_listed(script: Script) -> None:
    script.define(stages=["root-cause", "final"])
    script.review(stage="root-cause")
    told: list[tuple[str, ...]] = []

    def dispatch(opened: OpenRound) -> Reviewed:
        told.append(opened.changed_tests)
        opened.dispatched()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        script.review(dispatch=dispatch)
    script.recover()
    (script.root / "tests/test_value.py").write_text("changed\n")
    (script.root / "src/value.py").write_text("changed too\n")
    with pytest.raises(KeyboardInterrupt):
        script.review(dispatch=dispatch)
    script.recover(2)
    (script.root / "tests/test_value.py").unlink()
    with pytest.raises(KeyboardInterrupt):
        script.review(dispatch=dispatch)
    assert told == [(), ("tests/test_value.py",), ("tests/test_value.py",)]


# --- Kills -----------------------------------------------------------------------------------------------------------


def in_child(work: Callable[[], None], at: int) -> tuple[int, int]:
    """Run `work` in a fork that kills itself at its `at`-th call or return of a function; 0 for never.

    Returns:
        The wait status, and how many such events there were when nothing was killed.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        events = 0

        def count(_frame: FrameType, _event: str, _argument: object) -> None:
            nonlocal events
            events += 1
            if events == at:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.setprofile(count)
            try:
                work()
            finally:
                sys.setprofile(None)
            os.write(writer, str(events).encode())
        except BaseException:  # noqa: BLE001 - told by the empty pipe
            os._exit(3)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        told = stream.read()
    return os.waitpid(child, 0)[1], int(told or b"0")


@pytest.mark.skipif(os.name != "posix", reason="forks and kills")
@pytest.mark.parametrize("verdict", ["approved", "rejected"])
def test_a_kill_at_any_instant_leaves_a_sound_ledger_and_nothing_is_dispatched_again(
    tmp_path: Path, verdict: str
) -> None:
    """Kills spread evenly over all calls and returns of a whole round, so that every phase is hit."""

    def work_on(place: Path) -> tuple[Script, Path, Callable[[], None]]:
        place.mkdir()
        script, dispatches = Script.begin(place), place / "dispatches"

        def dispatch(opened: OpenRound) -> Reviewed:
            opened.dispatched()
            with open(dispatches, "a") as file:
                file.write(f"{opened.nonce}\n")
            return Reviewed(seal(script.evidence(opened, verdict)))

        def work() -> None:
            script.review(dispatch=dispatch)

        return script, dispatches, work

    work_on(tmp_path / "warm")[2]()  # what is imported and compiled on first use is no part of a round
    status, events = in_child(work_on(tmp_path / "whole")[2], 0)
    assert status == 0
    assert events > 1000
    phases: dict[str, int] = {}
    for number in range(KILLS):
        script, dispatches, work = work_on(tmp_path / str(number))
        at = 1 + number * events // KILLS
        status, _ = in_child(work, at)
        # Two rounds differ by a few calls, so the very last kill may come too late.
        assert status == signal.SIGKILL or (status == 0 and at > 0.95 * events)
        state = judge(script, dispatches, verdict)
        phases[state] = phases.get(state, 0) + 1
        again(script, dispatches, state)
    assert {"none", "unknown"} <= set(phases), phases


def judge(script: Script, dispatches: Path, verdict: str) -> str:
    """After a kill: the ledger opens, checks that it is sound, and says what is known."""
    found = rounds(script)
    dispatched = dispatches.read_text().split() if dispatches.exists() else []
    if not found:
        assert dispatched == []  # nothing was claimed, so nothing was sent
        return "none"
    (one,) = found
    assert set(dispatched) <= {one.facts.nonce}
    assert one.facts.state in {"unknown", verdict}
    if one.facts.state == verdict:
        assert one.evidence_name is not None
        assert (script.state.evidence / one.evidence_name).exists()
    if dispatched:
        assert one.stored_state != "claimed"  # entered before it was sent
    answer = script.gate()
    expected = {"unknown": "unknown", "approved": "passed", "rejected": "failed"}
    assert answer.conclusion[0] == expected[one.facts.state]
    return one.facts.state


def again(script: Script, dispatches: Path, state: str) -> None:
    """The same command once more: dispatched anew only where nothing was claimed."""
    before = dispatches.read_text() if dispatches.exists() else ""
    if state == "unknown":
        with pytest.raises(ClaimRefusedError) as caught:
            script.review()
        assert caught.value.code == "round_unknown"
        assert (dispatches.read_text() if dispatches.exists() else "") == before
        script.recover(reason="killed")
        found = rounds(script)
        assert [one.facts.state for one in found] == ["abandoned"]
        assert script.gate().conclusion[0] == "failed"
    elif state == "none":
        assert script.review().number == 1
