"""A review through the engine, by the real CLI against a scripted model: what the ledger, the observers and the files
hold of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from e2e.reviewer import HONEST, Reviewed, played, prepare
from firsthand.definition import load_definition
from firsthand.engine.providers import choose_leg, find_provider, this_host
from firsthand.engine.reviewing import run_review
from firsthand.errors import UsageError
from firsthand.evidence.keyfiles import new_key
from firsthand.evidence.storing import read_sealed
from firsthand.evidence.verifying import verify
from firsthand.ledger import Ledger
from firsthand.plugins import Observers
from firsthand.residues import StateDirectory
from firsthand.review.interface import ReviewError


@pytest.fixture
def reviewed(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Reviewed:
    ready = prepare(tmp_path, tmp_path_factory)
    ready.define("engine", stages=["final"])
    return ready


@pytest.mark.slow
def test_the_ledger_holds_the_digest_of_every_call_as_the_evidence_has_it(reviewed: Reviewed, tmp_path: Path) -> None:
    bare = dict(reviewed.program.environment)
    key = new_key(tmp_path / "key.pem")
    with played(HONEST) as model:
        done = run_review(
            reviewed.project.config,
            reviewed.diagnosis,
            "final",
            state_path=reviewed.program.state,
            out=tmp_path / "result.json",
            key=tmp_path / "key.pem",
            observers=Observers(),
            host=this_host(None, {**bare, "ANTHROPIC_BASE_URL": model.url}),
        )
        assert model.problems == []
    assert (done.ended.state, done.failure, done.changed_tests) == ("approved", None, ())
    raw = read_sealed(done.ended.path)
    assert raw == read_sealed(tmp_path / "result.json")
    found = verify(raw, trusted_keys=[key], root=reviewed.project.root)
    assert (found.valid, found.signed, found.stale) == (True, True, False)
    dispatch = done.ended.evidence.dispatch
    assert dispatch is not None
    assert dispatch.transcript is not None
    assert dispatch.judgement is not None
    with Ledger.open(StateDirectory.open(reviewed.program.state)) as ledger:
        bodies = [(entry.kind, entry.body) for entry in ledger.entries("engine")]
    heads = [(body["what"], body["digest"]) for kind, body in bodies if kind == "head" and isinstance(body, dict)]
    assert heads == [
        *(("call", call.canonical_digest()) for call in dispatch.tool_calls),
        ("transcript", dispatch.transcript.sha256),
        ("answer", dispatch.judgement.canonical_digest()),
    ]
    assert [kind for kind, _ in bodies] == ["bound", "claimed", "dispatched", *["head"] * 5, "sealed", "ended"]
    (one,) = reviewed.rounds()
    assert one.facts.evidence_digest == found.digest == done.ended.sha256


def test_what_can_be_foreseen_is_refused_before_the_claim(reviewed: Reviewed) -> None:
    host = this_host(None, dict(reviewed.program.environment))

    def ask(stage: str, review: Path) -> None:
        run_review(
            reviewed.project.config,
            review,
            stage,
            state_path=reviewed.program.state,
            out=None,
            key=None,
            observers=Observers(),
            host=host,
        )

    with pytest.raises(UsageError, match="no stage"):
        ask("root-cause", reviewed.diagnosis)
    with pytest.raises(ReviewError) as missing:
        ask("final", reviewed.folder / "none.json")
    assert missing.value.code == "tool_preflight_missing"
    found = json.loads(reviewed.diagnosis.read_text())
    found["provider"]["name"] = "other"
    reviewed.diagnosis.write_text(json.dumps(found))
    with pytest.raises(ReviewError) as foreign:
        ask("final", reviewed.diagnosis)
    assert foreign.value.code == "tool_preflight_missing"
    assert reviewed.states() == []


def test_a_definition_without_a_known_reviewer_names_its_field(reviewed: Reviewed) -> None:
    for name in (None, "nobody"):
        reviewed.define(f"reviewer-{name}", reviewRuntime=name)
        with pytest.raises(ReviewError) as caught:
            find_provider(load_definition(reviewed.project.config).document)
        assert (caught.value.code, caught.value.where) == ("review_verification_provider", "reviewRuntime")
        assert caught.value.next_step


def test_a_key_of_the_environment_comes_before_everything(reviewed: Reviewed) -> None:
    provider, plugin = find_provider(load_definition(reviewed.project.config).document)
    assert (plugin.name, plugin.distribution) == ("claude", "firsthand-claude")
    bare = dict(reviewed.program.environment)
    assert choose_leg(provider, this_host(None, bare)) is None
    leg = choose_leg(provider, this_host(None, {**bare, "ANTHROPIC_API_KEY": "k"}))
    assert leg is not None
    assert leg.auth == "provider-env"
    with pytest.raises(ReviewError) as caught:
        choose_leg(provider, this_host(reviewed.folder / "no-program", bare))
    assert caught.value.code == "review_verification_provider"
