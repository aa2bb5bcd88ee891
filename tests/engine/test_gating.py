"""The gate: what makes it green, and each thing that does not."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

from engine.script import Script
from evidence.builder import FILES, digest
from evidence.reviews import review_evidence
from evidence.vectors import published_key
from firsthand.definition import DefinitionError
from firsthand.engine.gating import CLOSING, GateAnswer, gate
from firsthand.engine.rounds import OpenRound, Reviewed
from firsthand.errors import StateError
from firsthand.evidence import seal
from firsthand.ledger import Ledger, LedgerError, RunBindingError, database
from firsthand.ledger.place import LedgerPlace
from firsthand.records import Isolation
from firsthand.rules import exit_status
from ledger.desk import asked, judged


def not_green(answer: GateAnswer, status: str, code: str) -> GateAnswer:
    assert answer.conclusion == (status, code), answer.as_json()
    assert exit_status(answer.conclusion[1]) != 0
    return answer


def test_green(script: Script) -> None:
    ended = script.review()
    answer = script.gate()
    assert answer.conclusion == ("passed", "")
    value: Any = answer.as_json()
    assert value["status"] == "passed"
    assert value["note"] == CLOSING
    (stage,) = value["stages"]
    assert stage["stage"] == "final"
    assert stage["sha256"] == ended.sha256
    assert (stage["stale"], stage["signed"], stage["problems"], stage["closed"]) == (False, False, [], [])
    assert stage["isolation"] == {"level": "app-layer", "reason": "no-sandbox-provider", "auth": "provider-env"}
    assert stage["unread"] == ["tests/test_value.py", "REQUIREMENTS.md"]


def test_nothing_reviewed_is_not_green(script: Script) -> None:
    not_green(script.gate(), "failed", "review_verification_evidence")


@pytest.mark.parametrize(("verdict", "code"), [("rejected", "review_rejected"), ("blocked", "review_blocked")])
def test_any_other_verdict(script: Script, verdict: str, code: str) -> None:
    script.review(verdict)
    not_green(script.gate(), "failed", code)


def test_the_latest_round_counts_and_no_earlier_one(script: Script) -> None:
    script.review("approved")
    script.review("blocked")
    not_green(script.gate(), "failed", "review_blocked")


def test_a_round_that_goes_on_is_unknown(script: Script) -> None:
    def dispatch(opened: OpenRound) -> Reviewed:
        not_green(script.gate(), "unknown", "round_unknown")
        opened.dispatched()
        not_green(script.gate(), "unknown", "round_unknown")
        return Reviewed(seal(script.evidence(opened)))

    script.review(dispatch=dispatch)
    assert script.gate().conclusion == ("passed", "")


def test_an_unclear_end_is_unknown_and_a_recovered_one_is_negative(script: Script) -> None:
    def dispatch(opened: OpenRound) -> Reviewed:
        opened.dispatched()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        script.review(dispatch=dispatch)
    assert exit_status(not_green(script.gate(), "unknown", "round_unknown").conclusion[1]) == 4
    script.recover(reason="the power went")
    answer = not_green(script.gate(), "failed", "review_verification_evidence")
    value: Any = answer.as_json()
    assert value["stages"][0]["closed"] == [
        {"round": 1, "state": "abandoned", "as": "abandoned", "reason": "the power went"}
    ]


@pytest.mark.parametrize("path", list(FILES))
def test_changed_bytes_are_stale(script: Script, path: str) -> None:
    script.review()
    (script.root / path).write_bytes(b"other\n")
    not_green(script.gate(), "failed", "evidence_stale")
    (script.root / path).write_bytes(FILES[path])
    assert script.gate().conclusion == ("passed", "")


def test_a_changed_mode_is_stale(script: Script) -> None:
    script.review()
    (script.root / "src/value.py").chmod(0o755)
    not_green(script.gate(), "failed", "evidence_stale")


def test_a_touched_or_linked_file_is_fresh(script: Script) -> None:
    script.review()
    os.utime(script.root / "src/value.py", (1, 1))
    os.link(script.root / "src/value.py", script.root / "more")
    assert script.gate().conclusion == ("passed", "")


def test_missing_evidence(script: Script) -> None:
    script.review().path.unlink()
    not_green(script.gate(), "failed", "evidence_invalid")


def test_evidence_of_another_digest_is_not_the_ledgers(script: Script) -> None:
    """Valid and fresh in itself, of this very round, and yet not what was entered."""
    kept: list[OpenRound] = []

    def dispatch(opened: OpenRound) -> Reviewed:
        kept.append(opened)
        opened.dispatched()
        return Reviewed(seal(script.evidence(opened)))

    ended = script.review(dispatch=dispatch)
    script.changes = {"started_at": "2030-01-01T00:00:00Z"}
    ended.path.write_bytes(seal(script.evidence(kept[0])))
    answer = not_green(script.gate(), "failed", "evidence_invalid")
    assert "ledger's" in answer.stages[0].problems[0].message


def test_a_rejection_whose_file_was_made_an_approval(script: Script) -> None:
    kept: list[OpenRound] = []

    def dispatch(opened: OpenRound) -> Reviewed:
        kept.append(opened)
        opened.dispatched()
        return Reviewed(seal(script.evidence(opened, "rejected")))

    ended = script.review(dispatch=dispatch)
    ended.path.write_bytes(seal(script.evidence(kept[0], "approved")))
    not_green(script.gate(), "failed", "review_rejected")


@pytest.mark.parametrize("place", ["folder", "link", "fifo"])
def test_evidence_that_is_no_file(script: Script, place: str) -> None:
    ended = script.review()
    ended.path.unlink()
    if place == "folder":
        ended.path.mkdir()
    elif place == "fifo":
        os.mkfifo(ended.path)
    else:
        ended.path.symlink_to("absent")
    not_green(script.gate(), "failed", "evidence_invalid")


def test_a_tampered_byte(script: Script) -> None:
    ended = script.review()
    ended.path.write_bytes(ended.path.read_bytes().replace(b"Said.", b"Sbid."))
    not_green(script.gate(), "failed", "evidence_invalid")


def test_an_old_ledger_put_back_is_noticed_by_the_evidence(script: Script, tmp_path: Path) -> None:
    """Ledger and head together, which agree with each other."""
    script.review("approved")
    place = LedgerPlace.of(script.state)
    shutil.copy2(place.file, tmp_path / "ledger")
    shutil.copy2(place.head, tmp_path / "head")
    script.review("rejected")
    not_green(script.gate(), "failed", "review_rejected")
    shutil.copy2(tmp_path / "ledger", place.file)
    with pytest.raises(LedgerError, match="not the latest"):
        script.gate()
    shutil.copy2(tmp_path / "head", place.head)
    answer = not_green(script.gate(), "failed", "evidence_invalid")
    assert "older" in answer.stages[0].problems[0].message


def test_the_gate_shows_why_a_rejection_was_closed(script: Script) -> None:
    script.review("rejected")
    script.recover(reason="it judged another requirement")
    not_green(script.gate(), "failed", "review_rejected")
    script.review("approved")
    answer = script.gate()
    assert answer.conclusion == ("passed", "")
    assert [one.reason for one in answer.stages[0].closed] == ["it judged another requirement"]


def test_an_earlier_stage_rests_on_the_bytes_of_its_time(script: Script) -> None:
    script.define(stages=["root-cause", "final"])
    script.review(stage="root-cause")
    not_green(script.gate(), "failed", "review_verification_evidence")
    (script.root / "tests/test_value.py").write_bytes(FILES["tests/test_value.py"] + b"# stricter\n")
    # Not reviewed finally yet, so nothing took over from what is stale now.
    assert {stage.stage: stage.conclusion[1] for stage in script.gate().stages} == {
        "root-cause": "evidence_stale",
        "final": "review_verification_evidence",
    }
    script.review(stage="final")
    answer = script.gate()
    assert answer.conclusion == ("passed", "")
    root_cause, final = answer.stages
    assert (root_cause.superseded, root_cause.stale) == (True, None)
    assert root_cause.changed == root_cause.changed_tests == ("tests/test_value.py",)
    assert (final.superseded, final.stale, final.changed) == (False, False, ())


def test_a_root_cause_reviewed_after_the_final_stage_must_be_fresh(script: Script) -> None:
    script.define(stages=["root-cause", "final"])
    script.review(stage="final")
    (script.root / "tests/test_value.py").write_bytes(b"# other\n")
    script.review(stage="root-cause")
    (script.root / "tests/test_value.py").write_bytes(FILES["tests/test_value.py"])
    answer = not_green(script.gate(), "failed", "evidence_stale")
    assert [stage.conclusion[1] for stage in answer.stages] == ["evidence_stale", ""]


def test_a_rejected_root_cause_is_not_made_good_by_the_final_stage(script: Script) -> None:
    script.define(stages=["root-cause", "final"])
    script.review("rejected", stage="root-cause")
    script.review(stage="final")
    not_green(script.gate(), "failed", "review_rejected")


def test_a_mixed_set_is_refused_else_negative_else_unknown(script: Script) -> None:
    script.define(stages=["root-cause", "final"])
    script.review("rejected", stage="root-cause")

    def dispatch(opened: OpenRound) -> Reviewed:
        opened.dispatched()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        script.review(dispatch=dispatch)
    answer = not_green(script.gate(), "failed", "review_rejected")
    assert [stage.conclusion[0] for stage in answer.stages] == ["failed", "unknown"]


def test_another_definition_under_the_same_id(script: Script) -> None:
    script.review()
    script.define(maxRounds=6)
    with pytest.raises(RunBindingError):
        script.gate()


def test_the_expected_fingerprint(script: Script) -> None:
    script.review()
    fingerprint = script.definition().fingerprint
    assert script.gate(expected_fingerprint=fingerprint.upper() + "\n").conclusion == ("passed", "")
    for wrong in ("0" * 64, "", fingerprint[:12]):
        with pytest.raises(RunBindingError) as caught:
            script.gate(expected_fingerprint=wrong)
        assert caught.value.code == "review_verification_definition_changed"
        assert caught.value.exit_status == 2


def test_a_weakened_definition_under_a_new_id_is_caught_by_the_fingerprint(script: Script) -> None:
    """The attack that the option is for: a change under review that brings a definition of its own."""
    agreed = script.definition().fingerprint
    script.define(runId="demo-2", maxRounds=100)
    script.review()
    assert script.gate().conclusion == ("passed", "")
    with pytest.raises(RunBindingError):
        script.gate(expected_fingerprint=agreed)


def test_a_sub_run_inherits_no_evidence(script: Script) -> None:
    ended = script.review()
    script.define(runId="demo-1-qa")
    not_green(script.gate(), "failed", "review_verification_evidence")
    copy = ended.path.with_name(ended.path.name.replace("demo-1", "demo-1-qa", 1))
    shutil.copy2(ended.path, copy)
    not_green(script.gate(), "failed", "evidence_invalid")


OS_SANDBOX = Isolation(level="os-sandbox", reason=None, auth="provider-env")


def test_require_os_sandbox(script: Script) -> None:
    script.review()
    not_green(script.gate(requirements=["os-sandbox"]), "failed", "review_verification_evidence")
    script.changes = {"isolation": OS_SANDBOX}
    script.review()
    assert script.gate(requirements=["os-sandbox"]).conclusion == ("passed", "")


def test_require_execution_and_probed(script: Script) -> None:
    script.review()
    assert script.gate(requirements=["execution", "probed"]).conclusion == ("passed", "")


def test_require_probed_of_every_path(script: Script) -> None:
    section = {
        "files": list(FILES),
        "checks": [{"id": "value", "command": ["python3", "-m", "pytest", "tests/test_value.py"]}],
        "mutationPaths": [],
        "timeoutMs": 60000,
    }
    script.define(runId="demo-3", reviewVerification=section)
    draft = review_evidence()
    assert draft.dispatch is not None
    script.changes = {"mutations": (), "controls": (), "runs": draft.runs[:1]}

    def dispatch(opened: OpenRound) -> Reviewed:
        opened.dispatched()
        evidence = script.evidence(opened)
        assert evidence.dispatch is not None
        calls = evidence.dispatch.tool_calls[:2]
        script.changes["dispatch"] = evidence.dispatch.model_copy(
            update={"tool_calls": calls, "unread": evidence.dispatch.unread}
        )
        coverage = evidence.dispatch.coverage[:1]
        script.changes["dispatch"] = script.changes["dispatch"].model_copy(update={"coverage": coverage})
        return Reviewed(seal(script.evidence(opened)))

    script.review(dispatch=dispatch)
    assert script.gate().conclusion == ("passed", "")
    not_green(script.gate(requirements=["probed"]), "failed", "review_verification_evidence")


def test_require_signed(script: Script) -> None:
    script.review()
    not_green(script.gate(requirements=["signed"]), "failed", "review_verification_evidence")
    script.key = published_key()
    script.review()
    not_green(script.gate(requirements=["signed"]), "failed", "review_verification_evidence")
    answer = script.gate(requirements=["signed"], trusted_keys=[published_key().public])
    assert answer.conclusion == ("passed", "")
    assert answer.stages[0].signed
    assert script.gate().conclusion == ("passed", "")


def test_what_can_not_be_used_is_refused(script: Script, tmp_path: Path) -> None:
    script.review()
    LedgerPlace.of(script.state).file.chmod(0o644)
    with pytest.raises(StateError):
        script.gate()
    with pytest.raises(StateError, match="inside the source"):
        gate(script.config, state_path=script.root / "state")
    script.config.write_text("{}")
    with pytest.raises(DefinitionError):
        script.gate()


def test_the_gate_writes_nothing(script: Script) -> None:
    script.review()

    def seen() -> dict[str, tuple[int, bytes]]:
        files = [path for path in script.state.path.rglob("*") if path.is_file()]
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = seen()
    script.gate()
    assert seen() == before


def best_ms(work: Callable[[], object], times: int = 5) -> float:
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found) * 1000


def fill(script: Script, monkeypatch: pytest.MonkeyPatch, runs: int) -> list[int]:
    """Rounds of other runs, without waiting for the disk; the file's size after each quarter."""
    file, sizes = LedgerPlace.of(script.state).file, []
    with Ledger.open(script.state) as ledger, monkeypatch.context() as patch:
        ledger._database._connection.execute("PRAGMA synchronous = OFF")
        patch.setattr(database, "write_head", lambda path, head: None)
        for number in range(runs):
            if number % (runs // 4) == 0:
                sizes.append(file.stat().st_size)
            judged(ledger, ledger.claim(asked(run_id=f"run-{number}")), "approved")
    return [*sizes, file.stat().st_size]


def test_the_gate_over_a_thousand_runs(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach: 300 ms. The ledger grows with the rounds, and holds no file contents."""
    script.review()
    sizes = fill(script, monkeypatch, 1000)
    steps = [later - earlier for earlier, later in pairwise(sizes)]
    assert max(steps) < 1.2 * min(steps)
    raw = LedgerPlace.of(script.state).file.read_bytes()
    for content in FILES.values():
        assert content.strip() not in raw
    assert script.gate().conclusion == ("passed", "")
    assert best_ms(script.gate) < 900


def test_a_claim_costs_little_more_than_its_commit(script: Script, tmp_path: Path) -> None:
    """Reach: 10 ms where a bare commit takes 2; the disk of the moment is measured beside it."""
    connection = sqlite3.connect(tmp_path / "bare.sqlite", isolation_level=None)
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("CREATE TABLE t (x)")
    bare_ms = best_ms(lambda: connection.execute("INSERT INTO t VALUES (1)"), times=30)
    connection.close()
    numbers = count()
    with Ledger.open(script.state) as ledger:
        claim_ms = best_ms(lambda: ledger.claim(asked(run_id=f"run-{next(numbers)}")), times=30)
    assert claim_ms < 10 + 4 * bare_ms, (claim_ms, bare_ms)


def test_the_script_makes_what_the_gate_expects(script: Script) -> None:
    """The tests rest on it: its manifest is what the product would freeze."""
    assert [entry.sha256 for entry in script.manifest().entries] == [digest(raw) for raw in FILES.values()]
