"""`firsthand gate` and `firsthand runs`, driven as their users drive them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from e2e.program import Answer, Program
from engine.script import Script
from evidence.vectors import published_key
from firsthand.engine.gating import CLOSING
from firsthand.engine.rounds import OpenRound, Reviewed
from firsthand.evidence import seal


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script.begin(tmp_path)


@pytest.fixture
def program(script: Script) -> Program:
    return Program(script.state.path)


def ask(program: Program, script: Script, *arguments: str | Path) -> Answer:
    return program(*arguments, cwd=script.root)


def interrupted(script: Script) -> None:
    def dispatch(opened: OpenRound) -> Reviewed:
        opened.dispatched()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        script.review(dispatch=dispatch)


def test_green_and_its_closing_sentence(program: Program, script: Script) -> None:
    script.review()
    answer = ask(program, script, "gate")
    assert (answer.status, answer.err) == (0, "")
    assert "\ngreen\n" in answer.out
    assert answer.out.endswith(f"{CLOSING}\n")
    assert "app-layer (no-sandbox-provider)" in answer.out
    assert "not delivered whole to the reviewer: REQUIREMENTS.md" in answer.out
    told = ask(program, script, "gate", "--json")
    assert told.status == 0
    assert told.json["status"] == "passed"
    assert told.json["note"] == CLOSING
    assert [stage["stage"] for stage in told.json["stages"]] == ["final"]


@pytest.mark.parametrize(("verdict", "code"), [("rejected", "review_rejected"), ("blocked", "review_blocked")])
def test_negative_is_1(program: Program, script: Script, verdict: str, code: str) -> None:
    script.review(verdict)
    answer = ask(program, script, "gate")
    assert answer.status == 1
    assert f"not green: failed: {code}" in answer.out
    assert CLOSING in answer.out
    told = ask(program, script, "gate", "--json")
    assert (told.status, told.json["status"], told.json["code"]) == (1, "failed", code)


def test_nothing_reviewed_and_stale_bytes_are_1(program: Program, script: Script) -> None:
    assert ask(program, script, "gate", "--json").json["code"] == "review_verification_evidence"
    script.review()
    (script.root / "src/value.py").write_text("x = 1\n")
    told = ask(program, script, "gate", "--json")
    assert (told.status, told.json["code"], told.json["stages"][0]["stale"]) == (1, "evidence_stale", True)


def test_unknown_is_4_until_it_is_recovered(program: Program, script: Script) -> None:
    interrupted(script)
    told = ask(program, script, "gate", "--json")
    assert (told.status, told.json["status"], told.json["code"]) == (4, "unknown", "round_unknown")
    recover = (
        "runs",
        "recover",
        "--stage",
        "final",
        "--round",
        "1",
        "--as",
        "abandoned",
        "--reason",
        "power cut\x1b[2J",
    )
    answer = ask(program, script, *recover)
    assert answer.status == 0
    assert "approves nothing" in answer.out
    again = ask(program, script, *recover, "--json")
    assert (again.status, again.json["code"]) == (2, "usage")
    shown = ask(program, script, "gate")
    assert shown.status == 1
    assert "closed as abandoned: power cut\\x1b[2J" in shown.out
    assert "\x1b" not in shown.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["gate", "--require", "nothing"],
        ["gate", "--config", "absent.json"],
        ["gate", "--key", "absent.pub"],
        ["runs"],
        ["runs", "show", "absent"],
        ["runs", "recover"],
        ["runs", "recover", "--stage", "final", "--round", "1", "--as", "approved", "--reason", "please"],
        ["runs", "recover", "--stage", "final", "--round", "1", "--as", "failed", "--reason", " "],
        ["runs", "recover", "--stage", "final", "--round", "7", "--as", "failed", "--reason", "r"],
        ["runs", "recover", "--stage", "final", "--round", "0", "--as", "failed", "--reason", "r"],
        ["runs", "recover", "--stage", "nowhere", "--round", "1", "--as", "failed", "--reason", "r"],
        ["runs", "backup"],
        ["runs", "backup", "absent/file"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_2(program: Program, script: Script, arguments: list[str]) -> None:
    script.review()
    answer = ask(program, script, *arguments)
    assert answer.status == 2, answer
    assert "Traceback" not in answer.err
    assert script.gate().conclusion == ("passed", "")  # nothing was changed


def test_the_expected_fingerprint(program: Program, script: Script) -> None:
    script.review()
    assert ask(program, script, "gate", "--expect-fingerprint", script.definition().fingerprint).status == 0
    told = ask(program, script, "gate", "--expect-fingerprint", "0" * 64, "--json")
    assert told.status == 2
    assert told.json["status"] == "refused"
    assert told.json["code"] == "review_verification_definition_changed"


def test_requirements(program: Program, script: Script, tmp_path: Path) -> None:
    script.review()
    assert ask(program, script, "gate", "--require", "execution", "--require", "probed").status == 0
    answer = ask(program, script, "gate", "--require", "os-sandbox", "--require", "signed", "--json")
    assert answer.status == 1
    problems = answer.json["stages"][0]["problems"]
    assert [problem["where"] for problem in problems] == ["isolation.level", "envelope"]
    public = tmp_path / "key.pub"
    public.write_text(published_key().public.pem)
    assert ask(program, script, "gate", "--key", public).status == 1  # a key that is named is a demand
    script.key = published_key()
    script.review()
    assert ask(program, script, "gate", "--key", public).status == 0
    assert ask(program, script, "gate", "--require", "signed").status == 1  # signed, by nobody who is trusted
    assert ask(program, script, "keys", "trust", public).status == 0
    assert ask(program, script, "gate", "--require", "signed").status == 0


def test_a_ledger_that_can_not_be_used_is_refused_and_kept(program: Program, script: Script) -> None:
    script.review()
    file = script.state.ledger / "ledger.sqlite"
    file.write_bytes(b"garbage" * 1000)
    for arguments in (["gate"], ["runs", "list"], ["runs", "show"]):
        told = ask(program, script, *arguments, "--json")
        assert (told.status, told.json["status"], told.json["code"]) == (2, "refused", "state_invalid")
    assert file.read_bytes() == b"garbage" * 1000


def test_what_is_known_of_runs(program: Program, script: Script) -> None:
    assert "no run" in ask(program, script, "runs", "list").out
    assert ask(program, script, "runs", "list", "--json").json == {"runs": []}
    script.review("rejected")
    script.recover(reason="a reason")
    interrupted(script)
    listed: Any = ask(program, script, "runs", "list", "--json").json["runs"]
    assert [(run["runId"], run["stages"]) for run in listed] == [
        (script.run_id, [{"stage": "final", "round": 2, "state": "unknown"}])
    ]
    assert f"{script.run_id} " in ask(program, script, "runs", "list").out
    shown = ask(program, script, "runs", "show")
    assert shown.status == 0
    for part in ("rejected", "a reason", "unknown", "dispatched", "latest entry of the ledger"):
        assert part in shown.out
    told: Any = ask(program, script, "runs", "show", script.run_id, "--json").json
    assert [(one["round"], one["state"], one["closedAs"]) for one in told["rounds"]] == [
        (1, "rejected", "abandoned"),
        (2, "unknown", None),
    ]
    usage = [entry["body"]["usage"] for entry in told["entries"] if entry["body"].get("usage")]
    assert [one["costUsd"] for one in usage] == ["0.0123"]
    assert told["entries"][-1]["entry"] == told["ledger"]["entry"]


def test_a_backup(program: Program, script: Script, tmp_path: Path) -> None:
    script.review()
    target = tmp_path / "backup.sqlite"
    assert ask(program, script, "runs", "backup", target).status == 0
    assert target.stat().st_mode & 0o777 == 0o600
    assert ask(program, script, "runs", "backup", target).status == 2
    told = ask(program, script, "runs", "backup", tmp_path / "other.sqlite", "--json")
    assert told.json["ledger"]["entry"] > 0


def test_a_hostile_reason_and_run_can_not_act_on_a_log(program: Program, script: Script) -> None:
    interrupted(script)
    script.recover(reason="x\n::error::owned\n##[add-path]/evil")
    for arguments in (["gate"], ["runs", "show"], ["gate", "--json"], ["runs", "show", "--json"]):
        out = ask(program, script, *arguments).out
        assert not any(line.lstrip().startswith("::") for line in out.splitlines())
        assert "##[" not in out


def test_the_evidence_of_a_round_verifies_alone(program: Program, script: Script, tmp_path: Path) -> None:
    def dispatch(opened: OpenRound) -> Reviewed:
        opened.dispatched()
        return Reviewed(seal(script.evidence(opened)))

    script.review(dispatch=dispatch, out=tmp_path / "result.json")
    assert ask(program, script, "verify", tmp_path / "result.json", "--root", script.root).status == 0
