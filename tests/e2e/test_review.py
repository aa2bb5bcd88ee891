"""A review as its users drive it: the installed program, the real CLI, and a scripted model on loopback."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e.program import carrying
from e2e.reviewer import (
    ACCESS_TOKEN,
    CART,
    CHECK,
    HONEST,
    LYING,
    MODEL,
    MUTATE,
    READ,
    REFRESH_TOKEN,
    REJECTING,
    Reviewed,
    dispatches,
    played,
    prepare,
    says,
)
from e2e.test_kill import Kin, kin_of
from firsthand_claude.scripted import Call, Fault, Turn

pytestmark = pytest.mark.slow

ANSWER = {
    "status",
    "evidence",
    "sha256",
    "stage",
    "round",
    "state",
    "changedTests",
    "isolation",
    "judgement",
    "toolCalls",
    "unread",
    "unprobed",
}
REFUSAL = {"status", "code", "message", "next", "where"}


@pytest.fixture
def reviewed(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Reviewed:
    return prepare(tmp_path, tmp_path_factory)


def renamed(turns: tuple[Turn, ...], check: str) -> list[Turn]:
    """The same turns for a check of another name."""
    return [
        Turn(
            calls=tuple(
                Call(call.tool, {**call.arguments, "checkId": check} if "checkId" in call.arguments else call.arguments)
                for call in turn.calls
            )
        )
        for turn in turns
    ]


def refused(reviewed: Reviewed, status: int, code: str, *, stage: str = "final", review: Path | None = None) -> Any:
    """A review that is refused; the model was asked nothing, and the ledger knows no further round."""
    before = reviewed.states()
    with played(HONEST) as model:
        answer = reviewed(*reviewed.command(stage, review), model=model)
        assert (answer.status, answer.json["status"], answer.json["code"]) == (status, "refused", code), answer
        assert set(answer.json) == REFUSAL
        assert answer.json["next"]
        assert model.exchanges == []
    assert reviewed.states() == before
    return answer.json


def recover(reviewed: Reviewed, number: int, reason: str) -> None:
    which = ("runs", "recover", "--stage", "final", "--round", str(number), "--as", "abandoned")
    answer = reviewed(*which, "--reason", reason, "--json")
    assert (answer.status, answer.json["closedAs"], answer.json["reason"]) == (0, "abandoned", reason)


def test_the_documented_way_from_init_to_a_green_gate_and_a_stale_one(reviewed: Reviewed) -> None:
    root = reviewed.project.root
    (root / "firsthand.json").unlink()
    assert reviewed("init").status == 0
    definition = json.loads((root / "firsthand.json").read_text())
    (check,) = [one["id"] for one in definition["reviewVerification"]["checks"]]
    definition["reviewRuntime"] = "claude"
    (root / "firsthand.json").write_text(json.dumps(definition))
    told = reviewed("preflight", "--model", MODEL, "--max-turns", "20")
    assert told.status == 0, told.err
    assert "shown to the model: StructuredOutput, mcp__cm_review__mutate_check" in told.err
    reviewed.diagnosis.write_text(told.out)
    assert reviewed("gate").status == 1
    with played(renamed(HONEST, check)) as model:
        shown = reviewed(*reviewed.command("root-cause")[:-1], model=model)
        assert dispatches(model) == 1
    assert shown.status == 0, shown
    assert "the approval is accepted" in shown.out
    assert "mutation in cart.py: detected" in shown.out
    assert "round 1 of stage root-cause: approved" in shown.out
    assert reviewed("gate").status == 1  # nobody reviewed the other stage
    answer = reviewed.review("final", renamed(HONEST, check))
    assert (answer.status, answer.json["status"], answer.json["round"], answer.json["state"]) == (
        0,
        "passed",
        1,
        "approved",
    )
    assert set(answer.json) == ANSWER
    assert (answer.json["toolCalls"], answer.json["unprobed"], answer.json["changedTests"]) == (3, [], [])
    assert "REQUIREMENTS.md" in answer.json["unread"]
    assert answer.json["isolation"]["level"] == "app-layer"
    green = reviewed("gate", "--require", "execution", "--require", "probed", "--json")
    assert (green.status, green.json["status"]) == (0, "passed"), green
    verify = ("verify", answer.json["evidence"], "--root", root, "--json")
    found = reviewed(*verify)
    assert (found.status, found.json["valid"], found.json["stale"]) == (0, True, False)
    assert reviewed("gate", "--require", "os-sandbox").status == 1
    # What is merged must be what was reviewed.
    (root / "cart.py").write_text(CART + "\n")
    stale = reviewed("gate", "--json")
    assert (stale.status, stale.json["code"]) == (1, "evidence_stale")
    found = reviewed(*verify)
    assert (found.status, found.json["valid"], found.json["stale"]) == (1, True, True)
    (root / "cart.py").write_text(CART)
    assert reviewed("gate").status == 0
    listed = reviewed("runs", "list", "--json").json["runs"]
    assert {(one["stage"], one["round"], one["state"]) for one in listed[0]["stages"]} == {
        ("root-cause", 1, "approved"),
        ("final", 1, "approved"),
    }


def test_a_rejection_is_not_overruled_by_asking_again(reviewed: Reviewed) -> None:
    reviewed.define("rejected", stages=["final"])
    answer = reviewed.review("final", REJECTING)
    assert (answer.status, answer.json["status"], answer.json["code"]) == (1, "failed", "review_rejected")
    assert (answer.json["state"], answer.json["judgement"]["verdict"]) == ("rejected", "rejected")
    assert set(answer.json) == ANSWER | {"code"}
    refused(reviewed, 1, "review_rejected")
    recover(reviewed, 1, "the requirement was misread")
    answer = reviewed.review("final", HONEST)
    assert (answer.status, answer.json["round"]) == (0, 2)
    green = reviewed("gate", "--json")
    assert green.status == 0
    (closed,) = green.json["stages"][0]["closed"]
    assert (closed["round"], closed["state"], closed["reason"]) == (1, "rejected", "the requirement was misread")


def test_a_liar_approves_nothing_and_uses_up_its_rounds(reviewed: Reviewed) -> None:
    reviewed.define("lied-to", stages=["final"], maxRounds=2)
    answer = reviewed.review("final", LYING)
    assert (answer.status, answer.json["status"], answer.json["code"]) == (1, "failed", "review_verification_evidence")
    assert (answer.json["state"], answer.json["toolCalls"]) == ("failed", 0)
    assert answer.json["judgement"]["verdict"] == "approved"
    assert reviewed("verify", answer.json["evidence"], "--json").json["valid"]
    # Green checks alone are not enough where something may be mutated.
    answer = reviewed.review("final", (READ, CHECK, says("approved")))
    assert (answer.status, answer.json["code"], answer.json["round"]) == (1, "review_verification_evidence", 2)
    assert answer.json["unprobed"] == ["cart.py"]
    refused(reviewed, 3, "rounds_exhausted")
    gate = reviewed("gate", "--json")
    assert (gate.status, gate.json["code"]) == (1, "review_verification_evidence")


@pytest.mark.parametrize(
    ("fault", "kinds"),
    [
        (Fault("status", 401), {"unauthenticated", "timed-out"}),
        (Fault("half-event"), {"stream-broken", "no-answer", "timed-out"}),
        (Fault("silence"), {"timed-out"}),
    ],
    ids=lambda value: value.kind if isinstance(value, Fault) else "",
)
def test_what_ends_unclear_is_unknown_and_is_not_asked_again(reviewed: Reviewed, fault: Fault, kinds: set[str]) -> None:
    reviewed.define("unclear", stages=["final"])
    answer = reviewed.review("final", (Turn(fault=fault, times=0),), review=reviewed.budgeted(4000))
    assert (answer.status, answer.json["status"], answer.json["code"]) == (4, "unknown", "round_unknown")
    assert answer.json["failure"]["kind"] in kinds
    assert (answer.json["state"], answer.json["judgement"]) == ("unknown", None)
    assert reviewed("gate", "--json").status == 4
    assert carrying(str(reviewed.program.state)) == []
    refused(reviewed, 4, "round_unknown")
    recover(reviewed, 1, "the service was away")
    assert reviewed("gate", "--json").status == 1
    if fault.kind == "silence":
        answer = reviewed.review("final", HONEST)
        assert (answer.status, answer.json["round"]) == (0, 2)


def _without(field: str) -> Callable[[dict[str, Any]], object]:
    return lambda found: found.pop(field)


WRONG: dict[str, Callable[[dict[str, Any]], object]] = {
    "tool-less": lambda found: found.update(kind="tool-less"),
    "another program": lambda found: found["program"].update(sha256="0" * 64),
    "another provider": lambda found: found["provider"].update(version="9.9.9"),
    "other tools": lambda found: found.update(toolSchemasDigest="0" * 64),
    "no budget": lambda found: found["budget"].update(timeoutMs=0),
    "a definition in it": lambda found: found.update(reviewVerification={}),
    "a field more": lambda found: found.update(more=1),
    "a field less": _without("model"),
}


def test_a_diagnosis_of_another_set_up_costs_no_round(reviewed: Reviewed) -> None:
    reviewed.define("foreseen", stages=["final"])
    changed = reviewed.folder / "changed.json"
    for name, change in WRONG.items():
        found = json.loads(reviewed.diagnosis.read_text())
        change(found)
        changed.write_text(json.dumps(found))
        assert refused(reviewed, 3, "tool_preflight_missing", review=changed), name
    for text in ("{", '{"kind": "tools", "kind": "tools"}'):
        changed.write_text(text)
        assert refused(reviewed, 3, "tool_preflight_missing", review=changed), text
    refused(reviewed, 3, "tool_preflight_missing", review=reviewed.folder / "none.json")
    refused(reviewed, 3, "tool_preflight_missing", review=reviewed.folder)
    refused(reviewed, 2, "usage", stage="root-cause")
    shown = reviewed("runs", "show", "--json")
    assert (shown.status, shown.json["rounds"]) == (0, [])


def test_without_a_provider_or_a_way_to_authenticate_no_round_is_used(reviewed: Reviewed) -> None:
    reviewed.define("nobody", stages=["final"], reviewRuntime="nobody")
    refused(reviewed, 3, "review_verification_provider")
    for definition in ("nobody", None):
        reviewed.define(f"nobody-{definition}", stages=["final"], reviewRuntime=definition)
        told = reviewed("preflight", "--model", MODEL)
        assert (told.status, told.out) == (3, "")
        assert "review_verification_provider" in told.err
        assert "next:" in told.err
    reviewed.define("unreadable", stages=["final"])
    place = reviewed.folder / "home" / ".claude"
    place.mkdir()
    (place / ".credentials.json").write_text("{")
    refused(reviewed, 3, "provider-config-unreadable")


def test_without_a_login_nothing_is_dispatched(reviewed: Reviewed) -> None:
    reviewed.define("no-login", stages=["final"])
    answer = reviewed(*reviewed.command("final"))
    assert (answer.status, answer.json["status"], answer.json["code"]) == (3, "refused", "no-auth")
    # Nothing was sent, so nothing is unknown, and the next review needs nobody's word.
    assert "unknown" not in {state for _, _, state, _ in reviewed.states()}
    assert reviewed.review("final", HONEST).status == 0


@pytest.mark.xfail(strict=True, reason="only the provider knows that it can't do without, and is asked after the claim")
def test_a_missing_login_costs_no_round(reviewed: Reviewed) -> None:
    reviewed.define("no-login", stages=["final"])
    assert reviewed(*reviewed.command("final")).json["code"] == "no-auth"
    assert reviewed.states() == []


def test_the_first_round_binds_the_package_and_changed_tests_are_listed(reviewed: Reviewed) -> None:
    reviewed.define("two-stages")
    test = reviewed.project.root / "tests" / "test_cart.py"
    document = reviewed.project.root / "REQUIREMENTS.md"
    assert reviewed.review("root-cause", HONEST).status == 0
    was = document.read_text()
    document.write_text("Whatever it does.\n")
    refused(reviewed, 3, "review_verification_package_binding")
    document.write_text(was)
    test.write_text(test.read_text() + "\n\n# weaker\n")
    (reviewed.project.root / "cart.py").write_text(CART + "\n\nPIECES = 1\n")
    answer = reviewed.review("final", HONEST)
    assert (answer.status, answer.json["changedTests"]) == (0, ["tests/test_cart.py"]), answer
    gate = reviewed("gate", "--json")
    assert gate.status == 0
    first, last = gate.json["stages"]
    assert (first["superseded"], first["changedTests"]) == (True, ["tests/test_cart.py"])
    assert first["changed"] == ["cart.py", "tests/test_cart.py"]
    assert (last["stale"], last["changedTests"]) == (False, [])


def test_without_verification_a_review_has_no_tools(reviewed: Reviewed) -> None:
    reviewed.define("tool-less", stages=["final"], reviewVerification=None)
    refused(reviewed, 3, "tool_preflight_missing")
    told = reviewed("preflight", "--model", MODEL, "--max-turns", "20")
    assert (told.status, json.loads(told.out)["tools"]) == (0, ["StructuredOutput"])
    reviewed.diagnosis.write_text(told.out)
    with played((says("approved"),)) as model:
        answer = reviewed(*reviewed.command("final"), model=model)
        assert {tuple(exchange.tool_names()) for exchange in model.messages()} == {("StructuredOutput",)}
    assert (answer.status, answer.json["status"], answer.json["toolCalls"]) == (0, "passed", 0), answer
    sealed = json.loads(Path(answer.json["evidence"]).read_bytes())
    assert '"execution": "none"' in json.dumps(sealed)
    found = reviewed("verify", answer.json["evidence"], "--root", reviewed.project.root, "--json")
    assert (found.json["valid"], found.json["stale"]) == (True, False)
    assert reviewed("gate").status == 0
    assert reviewed("gate", "--require", "execution").status == 1


def test_of_two_reviews_at_once_one_gets_the_round(reviewed: Reviewed) -> None:
    reviewed.define("raced", stages=["final"])
    # The first stays in its round for as long as the second needs to come to its claim, and longer.
    with played((Turn(fault=Fault("silence")), *HONEST)) as model:
        both = [reviewed.start("final", model, reviewed.budgeted(8000)) for _ in range(2)]
        answers = [json.loads(one.communicate(timeout=60)[0]) for one in both]
        assert sorted(one.returncode for one in both) == [3, 4]
        assert dispatches(model) == 1
    assert {one["code"] for one in answers} == {"round_taken", "round_unknown"}
    assert [(number, state) for _, number, state, _ in reviewed.states()] == [(1, "unknown")]


def test_an_interrupt_leaves_an_unknown_round_and_nothing_else(reviewed: Reviewed) -> None:
    reviewed.define("interrupted", stages=["final"])
    reviewed.log_in()
    with played((READ, Turn(fault=Fault("silence"), times=0))) as model:
        running = reviewed.start("final", model)
        assert model.wait_for(2, 60)
        assert reviewed.holding(ACCESS_TOKEN)  # else the last assertion would say nothing
        assert reviewed.holding(REFRESH_TOKEN) == []
        kin = kin_of(running.pid)
        assert kin
        os.kill(running.pid, signal.SIGINT)
        _, told = running.communicate(timeout=30)
    assert running.returncode == 4, told
    assert b"interrupted" in told
    assert not any(map(Kin.lives, kin))
    assert carrying(str(reviewed.program.state)) == []
    assert reviewed.states() == [("final", 1, "unknown", "round_unknown")]
    assert reviewed.program.sessions() == []
    assert reviewed.holding(ACCESS_TOKEN) == []
    assert list((reviewed.program.state / "evidence").iterdir()) == []
    refused(reviewed, 4, "round_unknown")


def test_a_check_that_is_red_and_a_source_that_moves_approve_nothing(reviewed: Reviewed) -> None:
    reviewed.define("red", stages=["final"])
    (reviewed.project.root / "cart.py").write_text(CART.replace("sum(prices)", "sum(prices) + 1"))
    answer = reviewed.review("final", (READ, CHECK, says("approved")))
    assert (answer.status, answer.json["code"], answer.json["state"]) == (
        1,
        "review_verification_baseline_failed",
        "failed",
    )
    (reviewed.project.root / "cart.py").write_text(CART)
    with played((READ, CHECK, MUTATE, Turn(delay_ms=1500, calls=says("approved").calls))) as model:
        running = reviewed.start("final", model)
        assert model.wait_for(4, 60)
        (reviewed.project.root / "cart.py").write_text(CART + "\n")
        out, err = running.communicate(timeout=60)
    assert running.returncode == 1, err
    assert json.loads(out)["code"] == "review_verification_source_drift"
