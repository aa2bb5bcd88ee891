"""Each step of the verification, with what it must find. Every forgery here is resealed, so no digest gives it away."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evidence.builder import (
    FILES,
    SOURCE,
    canonical,
    check_evidence,
    definition,
    digest,
    entry,
    forged,
    interleaved_evidence,
    mutate_evidence,
    mutation,
    plant,
    rebind,
    reseal,
    review_evidence,
    run,
    tool_less_evidence,
)
from firsthand.checks.excerpt import EXCERPT_BYTES
from firsthand.evidence import Verification, load_signing_key, new_key, seal, verify
from firsthand.evidence.form import LIMIT_MUTATIONS, LIMIT_RUNS
from firsthand.evidence.keys import SigningKey
from firsthand.evidence.runs import LIMIT_EXCERPT_BYTES
from firsthand.mutation.plan import LIMIT_MUTATIONS as PLAN_LIMIT
from firsthand.records import Evidence, Manifest

Change = Callable[[Any], None]


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    path = tmp_path_factory.mktemp("keys") / "key.pem"
    new_key(path)
    return load_signing_key(path)


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    path = tmp_path_factory.mktemp("stranger") / "key.pem"
    new_key(path)
    return load_signing_key(path)


def found(raw: bytes, where: str, message: str = "", **arguments: Any) -> Verification:
    """Verify, and require that a problem at this place is found and nothing is believed."""
    answer = verify(raw, **arguments)
    assert not answer.valid
    assert not answer.signed
    assert answer.evidence is None
    assert {problem.code for problem in answer.problems} == {"evidence_invalid"}
    places = [(problem.where, problem.message) for problem in answer.problems]
    assert any(place == where and message in text for place, text in places), places
    return answer


class TestHonestEvidence:
    @pytest.mark.parametrize(
        "evidence",
        [
            check_evidence(),
            mutate_evidence(),
            mutate_evidence(5),
            interleaved_evidence(),
            review_evidence(),
            tool_less_evidence(),
        ],
        ids=["check", "mutate", "more", "interleaved", "review", "tool-less"],
    )
    def test_it_is_valid_and_not_authentic(self, evidence: Evidence) -> None:
        answer = verify(seal(evidence))
        assert answer.problems == ()
        assert (answer.valid, answer.stale, answer.signed) == (True, None, False)
        assert answer.authenticity.startswith("consistent, not authentic: unsigned")
        assert answer.evidence == evidence

    def test_failure_is_valid_too(self) -> None:
        red = check_evidence(
            runs=(run(1, fails="assert 2 == 3"),), status="failed", code="review_verification_baseline_failed"
        )
        assert verify(seal(red)).valid

    def test_the_answer_as_json(self) -> None:
        raw = seal(check_evidence())
        answer = verify(raw).as_json()
        assert answer["valid"] is True
        assert answer["stale"] is None
        assert answer["signed"] is False
        assert answer["problems"] == []
        bad = verify(raw + b" ").as_json()
        assert bad["problems"] == [
            {"code": "evidence_invalid", "where": "file", "message": verify(raw + b" ").problems[0].message}
        ]


class TestShapeAndDigests:
    def test_bad_shape_is_an_answer(self) -> None:
        answer = found(b"{}", "schema")
        assert answer.digest is None

    def test_a_digest_that_does_not_fit(self) -> None:
        raw = seal(check_evidence())
        assert b'"durationMs":300' in raw
        found(raw.replace(b'"durationMs":300', b'"durationMs":301'), "digest", "changed after sealing")
        wrong = raw.replace(digest(canonical(check_evidence().as_json())).encode(), b"0" * 64)
        assert wrong != raw
        found(wrong, "digest")

    def test_inner_digests(self) -> None:
        def definition_changed(body: Any) -> None:
            body["definition"] = definition(maxRounds=6)

        def manifest_changed(body: Any) -> None:
            body["manifest"]["entries"][0]["links"] = 2

        def order_changed(body: Any) -> None:
            body["manifest"]["entries"].reverse()

        found(forged(check_evidence(), definition_changed), "definitionDigest")
        found(forged(check_evidence(), manifest_changed), "manifestDigest")
        found(forged(check_evidence(), order_changed), "manifestDigest")


def put(*path: str | int, to: Any) -> Change:
    """A change that sets one field."""

    def change(body: Any) -> None:
        for step in path[:-1]:
            body = body[step]
        assert body[path[-1]] != to
        body[path[-1]] = to

    return change


class TestForm:
    @pytest.mark.parametrize(
        ("evidence", "change", "where"),
        [
            (check_evidence(), put("stage", to="final"), "stage"),
            (check_evidence(), put("round", to=1), "round"),
            (check_evidence(), put("reviewRuntime", to="claude"), "reviewRuntime"),
            (check_evidence(), put("isolation", to={"level": "os-sandbox", "reason": None, "auth": None}), "isolation"),
            (review_evidence(), put("dispatch", to=None), "dispatch"),
            (review_evidence(), put("stage", to=None), "stage"),
            (review_evidence(), put("isolation", "level", to="os-sandbox"), "isolation.reason"),
            (review_evidence(), put("isolation", "reason", to=None), "isolation.reason"),
            (check_evidence(), put("enclosing", to=None), "enclosing"),
            (check_evidence(), put("execution", to="none"), "execution"),
            (tool_less_evidence(), put("execution", to="sandboxed"), "enclosing"),
            (mutate_evidence(), put("kind", to="check"), "kind"),
            (check_evidence(), put("code", to="evidence_invalid"), "code"),
            (check_evidence(), put("status", to="failed"), "code"),
            (check_evidence(), put("voided", to=["nonsense"]), "voided[0]"),
            (check_evidence(), put("startedAt", to="yesterday"), "startedAt"),
            (check_evidence(), put("startedAt", to="2026-01-02T03:04:05+01:00"), "startedAt"),
        ],
    )
    def test_what_no_command_writes(self, evidence: Evidence, change: Change, where: str) -> None:
        found(forged(evidence, change), where)

    def test_an_unknown_code(self) -> None:
        def change(body: Any) -> None:
            body.update(status="failed", code="nonsense")

        found(forged(check_evidence(), change), "code", "not a code")

    def test_records_of_commands_where_none_ran(self) -> None:
        found(forged(tool_less_evidence(), put("runs", to=[run(1).as_json()])), "runs")

    def test_more_records_than_any_command_makes(self) -> None:
        """So that no file of 64 MiB can keep the rules busy for hours."""

        def many(name: str, count: int) -> Change:
            def change(body: Any) -> None:
                body[name] *= count

            return change

        found(forged(mutate_evidence(1), many("mutations", LIMIT_MUTATIONS + 1)), "mutations", "more than 1000")
        found(forged(check_evidence(), many("runs", LIMIT_RUNS + 1)), "runs", "more than 4096")
        assert LIMIT_MUTATIONS == PLAN_LIMIT


class TestBindings:
    """The definition inside is the measure; every digest that a forger can recompute is recomputed."""

    def swapped(self, evidence: Evidence, **changes: Any) -> bytes:
        def change(body: Any) -> None:
            body["definition"] = definition(**changes)
            rebind(body)

        return forged(evidence, change)

    def verification(self, **changes: Any) -> dict[str, Any]:
        section = {
            "files": list(FILES),
            "checks": [{"id": "value", "command": list(run(1).command.argv)}],
            "mutationPaths": ["src/value.py"],
            "timeoutMs": 60000,
        }
        return section | changes

    def test_the_same_definition_changes_nothing(self) -> None:
        assert verify(self.swapped(mutate_evidence(), reviewVerification=self.verification())).valid

    @pytest.mark.parametrize(
        ("changes", "where"),
        [
            ({"runId": "other"}, "runId"),
            ({"runtime": "other"}, "runtime"),
            ({"root": "/", "unknown": 1}, "definition"),
            ({"package": {"requirements": [], "instructions": []}}, "packageDigest"),
            (
                {"package": {"requirements": [], "instructions": ["REQUIREMENTS.md", "tests/test_value.py"]}},
                "packageDigest",
            ),
            ({"reviewVerification": None}, "manifest"),
        ],
    )
    def test_another_definition(self, changes: dict[str, Any], where: str) -> None:
        found(self.swapped(mutate_evidence(), **changes), where)

    @pytest.mark.parametrize(
        ("changes", "where"),
        [
            ({"files": [*FILES, "extra.py"]}, "manifest"),
            ({"files": list(reversed(FILES))}, "manifest"),
            ({"files": ["src/value.py", "REQUIREMENTS.md"]}, "manifest"),
            ({"checks": [{"id": "other", "command": ["true"]}]}, "runs[0].checkId"),
            ({"checks": [{"id": "value", "command": ["python3", "-m", "pytest", "-x"]}]}, "runs[0].command.argv"),
            (
                {"checks": [{"id": "value", "command": list(run(1).command.argv), "runner": "exit"}]},
                "runs[0].runner",
            ),
            ({"mutationPaths": []}, "mutations[0].mutation"),
            ({"mutationPaths": ["tests/test_value.py"]}, "definition"),
            ({"timeoutMs": 1000}, "mutations[0].deadlineMs"),
            ({"timeoutMs": 0}, "definition"),
            ({"toolchains": ["/usr/local/venv"]}, "enclosing.toolchains"),
        ],
    )
    def test_another_registration(self, changes: dict[str, Any], where: str) -> None:
        found(self.swapped(mutate_evidence(), reviewVerification=self.verification(**changes)), where)

    def test_a_definition_in_another_spelling(self) -> None:
        for text in (definition() + " ", definition().replace('"root":"."', '"root":"\\u002e"'), "[]", "x", "\ufeff{}"):

            def change(body: Any, text: str = text) -> None:
                body["definition"] = text
                rebind(body)

            found(forged(check_evidence(), change), "definition")

    @pytest.mark.parametrize(
        ("change", "where"),
        [
            (put("stage", to="elsewhere"), "stage"),
            (put("round", to=6), "round"),
            (put("round", to=0), "round"),
            (put("reviewRuntime", to="other"), "reviewRuntime"),
        ],
    )
    def test_a_review_of_another_stage_or_reviewer(self, change: Change, where: str) -> None:
        found(forged(review_evidence(), change), where)

    def test_a_stage_that_the_definition_leaves_out(self) -> None:
        found(self.swapped(review_evidence(), stages=["root-cause"]), "stage")

    def test_the_package_is_bound(self) -> None:
        for value in (None, "0" * 64):
            found(forged(check_evidence(), put("packageDigest", to=value)), "packageDigest")

    def test_an_unlisted_executable(self) -> None:
        path = ("runs", 0, "command", "executable")
        found(forged(check_evidence(), put(*path, "sha256", to="0" * 64)), "runs[0].command.executable")
        found(forged(check_evidence(), put(*path, to=None)), "runs[0].command.executable")

    def test_a_toolchain_that_nobody_named(self) -> None:
        root = [{"path": "/opt/x", "named": True, "digest": "0" * 64}]
        found(forged(check_evidence(), put("enclosing", "toolchains", to=root)), "enclosing.toolchains")
        root[0]["named"] = False
        assert verify(forged(check_evidence(), put("enclosing", "toolchains", to=root))).valid


class TestRuns:
    stdout = ("runs", 0, "command", "stdout")

    @pytest.mark.parametrize(
        ("change", "where"),
        [
            (put(*stdout, "head", to="2 passed in 0.01s\n"), "runs[0].command.stdout.head"),
            (put(*stdout, "totalBytes", to=99), "runs[0].command.stdout.head"),
            (put(*stdout, "sha256", to="0" * 64), "runs[0].command.stdout.head"),
            (put(*stdout, "tail", to="x"), "runs[0].command.stdout.tail"),
            (put(*stdout, "truncated", to=True), "runs[0].command.stdout.truncated"),
            (put(*stdout, "head", to="x" * 8193), "runs[0].command.stdout"),
            (put("runs", 0, "command", "cwd", to=".."), "runs[0].command.cwd"),
        ],
    )
    def test_what_does_not_agree(self, change: Change, where: str) -> None:
        found(forged(check_evidence(), change), where)

    def test_what_can_be_cut_or_escaped(self) -> None:
        cut = {"head": "x", "tail": "y", "totalBytes": 5_000_000, "sha256": "0" * 64, "truncated": True}
        escaped = {"head": "\\xff", "tail": "", "totalBytes": 1, "sha256": digest(b"\xff"), "truncated": False}
        for stream in (cut, escaped):
            assert verify(forged(check_evidence(), put(*self.stdout, to=stream))).valid

    def test_mutations_of_one_lane_stand_in_the_order_of_their_runs(self) -> None:
        def swap(one: int, other: int) -> Change:
            def change(body: Any) -> None:
                found = body["mutations"]
                found[one], found[other] = found[other], found[one]

            return change

        found(forged(interleaved_evidence(), swap(0, 3)), "mutations[3]", "ran later")
        found(forged(interleaved_evidence(), swap(0, 2)), "mutations[2]", "ran later")

    def test_the_limit_is_the_one_that_excerpts_are_made_with(self) -> None:
        assert LIMIT_EXCERPT_BYTES == EXCERPT_BYTES


class TestDispatch:
    @pytest.mark.parametrize(
        ("change", "where"),
        [
            (lambda d: d["toolCalls"].pop(0), "dispatch.toolCalls[0].call"),
            (lambda d: d["toolCalls"].reverse(), "dispatch.toolCalls[0].call"),
            (lambda d: d["toolCalls"].append(d["toolCalls"][0]), "dispatch.toolCalls[6].call"),
            (put("toolCalls", 0, "code", to="usage"), "dispatch.toolCalls[0].code"),
            (put("toolCalls", 3, "code", to=""), "dispatch.toolCalls[3].code"),
            (lambda d: d["toolCalls"][3].update(result="ok", code=""), "dispatch.toolCalls[3].tool"),
            (put("toolCalls", 0, "runs", to=[1]), "dispatch.toolCalls[0].runs"),
            (put("toolCalls", 0, "mutation", to=0), "dispatch.toolCalls[0].mutation"),
            (put("toolCalls", 0, "argumentsSha256", to="0" * 64), "dispatch.toolCalls[0].argumentsSha256"),
            (put("toolCalls", 0, "arguments", to='{"path":"other"}'), "dispatch.toolCalls[0].argumentsSha256"),
            (put("toolCalls", 0, "arguments", to="x" * 2001), "dispatch.toolCalls[0].arguments"),
            (put("toolCalls", 1, "runs", to=[2]), "dispatch.toolCalls[2].runs"),
            (put("toolCalls", 1, "runs", to=[7]), "dispatch.toolCalls[1].runs"),
            (put("toolCalls", 1, "runs", to=[0]), "dispatch.toolCalls[1].runs"),
            (put("toolCalls", 2, "runs", to=[2, 3, 4, 5]), "dispatch.toolCalls[2].runs"),
            (put("toolCalls", 2, "mutation", to=1), "dispatch.toolCalls[2].mutation"),
            (put("coverage", 0, "path", to="absent"), "dispatch.coverage[0].path"),
            (put("coverage", 1, "path", to="src/value.py"), "dispatch.coverage[1].path"),
            (put("coverage", 0, "totalBytes", to=1), "dispatch.coverage[0]"),
            (put("coverage", 1, "deliveredBytes", to=99), "dispatch.coverage[1]"),
            (put("coverage", 1, "whole", to=True), "dispatch.coverage[1].whole"),
            (put("coverage", 1, "path", to="tests/test_value.py"), "dispatch.coverage[1]"),
            (put("toolCalls", 0, "tool", to="list_files"), "dispatch.coverage[0]"),
            (put("toolCalls", 1, "runs", to=[]), "runs[0]"),
            (put("toolCalls", 2, "mutation", to=None), "mutations[0]"),
            (put("unread", to=[]), "dispatch.unread"),
            (put("unread", to=["REQUIREMENTS.md", "tests/test_value.py"]), "dispatch.unread"),
        ],
    )
    def test_what_does_not_agree(self, change: Change, where: str) -> None:
        found(forged(review_evidence(), lambda body: change(body["dispatch"])), where)

    def test_what_the_call_asked_for(self) -> None:
        def other(index: int, arguments: dict[str, str]) -> Change:
            def change(body: Any) -> None:
                text = canonical(arguments).decode()
                body["dispatch"]["toolCalls"][index].update(arguments=text, argumentsSha256=digest(text.encode()))

            return change

        found(forged(review_evidence(), other(1, {"checkId": "other"})), "dispatch.toolCalls[1].runs")
        asked = {"checkId": "value", "path": "src/value.py", "old": "a + b", "new": "easier"}
        found(forged(review_evidence(), other(2, asked)), "dispatch.toolCalls[2].mutation")

    def test_a_check_does_not_run_mutated_files(self) -> None:
        def change(body: Any) -> None:
            body["dispatch"]["toolCalls"][1]["runs"] = [5]

        found(forged(review_evidence(), change), "dispatch.toolCalls[1].runs", "which run_check does not make")

    def test_one_mutation_for_two_calls(self) -> None:
        def change(body: Any) -> None:
            calls = body["dispatch"]["toolCalls"]
            calls[3] = calls[2] | {"call": 4, "runs": []}

        found(forged(review_evidence(), change), "dispatch.toolCalls[3].mutation", "belongs to call 3 already")

    def test_the_33rd_call_is_refused(self) -> None:
        def calls(last: str) -> Change:
            def change(body: Any) -> None:
                first = body["dispatch"]["toolCalls"][0]
                more = body["dispatch"]["toolCalls"]
                more += [first | {"call": number} for number in range(7, 34)]
                more[-1].update(result=last, code="" if last == "ok" else "usage")

            return change

        assert verify(forged(review_evidence(), calls("refused"))).valid
        found(forged(review_evidence(), calls("ok")), "dispatch.toolCalls[32].result")


class TestRules:
    """The widened and the rearranged, caught by the same rules that the live path uses."""

    @pytest.mark.parametrize(
        ("change", "where"),
        [
            (put("mutations", 0, "verdict", to="survived"), "mutations[0].verdict"),
            (put("mutations", 0, "cause", to="exit-code-only"), "mutations[0].verdict"),
            (put("mutations", 0, "before", to=1), "mutations[0].before"),
            (put("mutations", 0, "mutated", to=6), "mutations[1].mutated"),
            (put("mutations", 0, "mutated", to=5), "mutations[0].mutated"),
            (put("mutations", 0, "mutated", to=99), "mutations[0].mutated"),
            (put("mutations", 0, "after", to=7), "mutations[0].after"),
            (put("mutations", 0, "originalSha256", to="0" * 64), "mutations[0].originalSha256"),
            (put("mutations", 0, "mutatedSha256", to=digest(SOURCE)), "mutations[0].mutatedSha256"),
            (put("mutations", 0, "restoredSha256", to="0" * 64), "mutations[0].verdict"),
            (put("mutations", 0, "restoredMode", to=0o600), "mutations[0].verdict"),
            (put("mutations", 0, "offsetBytes", to=10_000), "mutations[0].offsetBytes"),
            (put("mutations", 0, "deadlineMs", to=60_000), "mutations[0].deadlineMs"),
            (put("mutations", 0, "mutation", "path", to="tests/test_value.py"), "mutations[0].mutation"),
            (put("controls", to=[]), "mutations[0].verdict"),
            (put("controls", 0, "run", to=3), "controls[0].run"),
            (put("runs", 3, "status", to="passed"), "runs[3].status"),
            (put("runs", 3, "cause", to="signalled"), "runs[3].status"),
            (put("runs", 3, "command", "outcome", "exitCode", to=2), "mutations[0].verdict"),
            (put("runs", 3, "command", "outcome", "cleanup", to="unknown"), "runs[3].status"),
            (put("runs", 3, "checkId", to="other"), "runs[3].checkId"),
            (put("runs", 3, "purpose", to="baseline"), "mutations[0].mutated"),
            (put("runs", 3, "lane", to=1), "mutations[0].mutated"),
            (put("runs", 3, "tests", "failures", to=[]), "mutations[0].verdict"),
            (put("runs", 3, "tests", "complete", to=False), "mutations[0].verdict"),
            (put("runs", 0, "tests", "executed", to=0), "runs[0].status"),
            (put("testNames", 0, "names", to=["other"]), "testNames[0].digest"),
            (put("testNames", to=[]), "runs[0].tests.names"),
            (put("unprobed", to=["src/value.py"]), "unprobed"),
            (lambda body: body["runs"].pop(0), "runs[0].run"),
            (lambda body: body["runs"].pop(), "mutations[1].after"),
            (lambda body: body["runs"].insert(0, body["runs"][0]), "runs[1].run"),
            (lambda body: body["runs"].reverse(), "runs[0].run"),
            (lambda body: body["mutations"].pop(), "runs[5]"),
            (lambda body: body["mutations"].append(body["mutations"][0]), "mutations[2].mutated"),
            (lambda body: body["controls"].append(body["controls"][0]), "controls[1]"),
        ],
    )
    def test_a_change_in_the_records(self, change: Change, where: str) -> None:
        found(forged(mutate_evidence(), change), where)

    def test_a_restored_run_without_what_was_restored(self) -> None:
        def change(body: Any) -> None:
            body["runs"].append(body["runs"][-1] | {"run": 8})

        found(forged(mutate_evidence(), change), "runs[7]", "restored")

    @pytest.mark.parametrize(
        ("evidence", "status", "code"),
        [
            (mutate_evidence(), "failed", "mutation_survived"),
            (check_evidence(), "unknown", "check_inconclusive"),
            (review_evidence(), "failed", "review_rejected"),
        ],
    )
    def test_a_status_that_does_not_follow(self, evidence: Evidence, status: str, code: str) -> None:
        found(forged(evidence, lambda body: body.update(status=status, code=code)), "status", "the records make it")

    def test_a_rejection_made_an_approval(self) -> None:
        rejected = forged(review_evidence(), lambda body: body["dispatch"]["judgement"].update(verdict="rejected"))
        found(rejected, "status", "review_rejected")

    def test_a_second_server_is_no_approval(self) -> None:
        found(forged(review_evidence(), put("dispatch", "serverInstances", to=2)), "status")

    def test_a_survivor_made_a_catch(self) -> None:
        """All that belongs to the survivor's green run is kept; only the verdict is widened."""
        survivor = mutation(3).model_copy(update={"verdict": "survived", "cause": "check-stayed-green"})
        runs = mutate_evidence(1).runs
        honest = mutate_evidence(
            1,
            runs=(*runs[:3], run(4, "mutated"), runs[4]),
            mutations=(survivor,),
            unprobed=("src/value.py",),
            status="failed",
            code="mutation_survived",
        )
        assert verify(seal(honest)).valid

        def widened(body: Any) -> None:
            body["mutations"][0].update(verdict="detected", cause="named-test-failed")
            body.update(unprobed=[], status="passed", code="")

        found(forged(honest, widened), "mutations[0].verdict", "the runs make it survived")

    def test_nothing_at_all_does_not_pass(self) -> None:
        found(forged(check_evidence(), lambda body: body.update(runs=[], testNames=[])), "status")
        empty = mutate_evidence(0)
        assert empty.mutations == ()
        found(seal(empty), "unprobed")
        found(seal(mutate_evidence(0, unprobed=("src/value.py",))), "status")


class TestSignature:
    def test_a_trusted_key_makes_it_authentic(self, key: SigningKey, stranger: SigningKey) -> None:
        for evidence in (check_evidence(), mutate_evidence(), review_evidence(), tool_less_evidence()):
            raw = seal(evidence, key)
            answer = verify(raw, trusted_keys=(stranger.public, key.public), require_signature=True)
            assert answer.problems == ()
            assert (answer.valid, answer.signed, answer.key_id) == (True, True, key.public.key_id)
            assert answer.authenticity == f"authentic: signed by the trusted key {key.public.key_id}"
            assert answer.digest == verify(seal(evidence)).digest

    def test_an_untrusted_key_does_not(self, key: SigningKey, stranger: SigningKey) -> None:
        raw = seal(check_evidence(), key)
        for trusted in ((), (stranger.public,)):
            answer = verify(raw, trusted_keys=trusted)
            assert (answer.valid, answer.signed) == (True, False)
            assert "not among the trusted keys" in answer.authenticity
            found(raw, "envelope.signatures[0]", "not trusted", trusted_keys=trusted, require_signature=True)

    def test_a_required_signature_must_be_there(self, key: SigningKey) -> None:
        found(seal(check_evidence()), "envelope", "unsigned", trusted_keys=(key.public,), require_signature=True)

    def test_a_resealed_forgery_that_keeps_the_rules_is_caught_by_the_signature_alone(self, key: SigningKey) -> None:
        """Nothing but the key can tell: a forger who knows the rules writes consistent evidence of what never ran."""
        honest = seal(mutate_evidence(), key)
        envelope = json.loads(honest)["envelope"]

        def invented(body: Any) -> None:
            body["startedAt"] = "2026-02-02T02:02:02Z"
            for each in body["runs"]:
                text = "1 passed in 0.02s\n"
                each["command"]["stdout"].update(head=text, totalBytes=len(text), sha256=digest(text.encode()))

        unsigned = verify(forged(mutate_evidence(), invented), trusted_keys=(key.public,))
        assert unsigned.valid
        assert not unsigned.signed
        assert unsigned.authenticity.startswith("consistent, not authentic")
        body = mutate_evidence().as_json()
        invented(body)
        found(reseal(body, envelope), "envelope.payload", trusted_keys=(key.public,))
        found(reseal(body, envelope), "envelope.payload")

    def test_a_signature_for_other_evidence_does_not_carry_over(self, key: SigningKey) -> None:
        envelope = json.loads(seal(check_evidence(), key))["envelope"]
        found(reseal(check_evidence(nonce="f" * 64).as_json(), envelope), "envelope.payload")
        found(reseal(mutate_evidence().as_json(), envelope), "envelope.payload")

    def test_a_signature_under_a_borrowed_key_id(self, key: SigningKey, stranger: SigningKey) -> None:
        value = json.loads(seal(check_evidence(), stranger))
        value["envelope"]["signatures"][0]["keyid"] = key.public.key_id
        found(
            canonical(value) + b"\n",
            "envelope.signatures[0].sig",
            trusted_keys=(key.public, stranger.public),
        )

    def test_other_forms_of_an_envelope(self, key: SigningKey) -> None:
        value = json.loads(seal(check_evidence(), key))
        signature = value["envelope"]["signatures"][0]
        forms: list[dict[str, Any]] = [
            {"signatures": []},
            {"signatures": [signature, signature]},
            {"signatures": [signature | {"sig": signature["sig"][:-4]}]},
            {"signatures": [signature | {"sig": signature["sig"].rstrip("=")}]},
            {"signatures": [signature | {"sig": "-_" + signature["sig"][2:]}]},
            {"signatures": [signature | {"cert": ""}]},
            {"signatures": [signature | {"keyid": ""}]},
            {"payload": value["envelope"]["payload"] + "\n"},
            {"payload": "ä"},
            {"payloadType": "application/json"},
            {"extra": 1},
        ]
        for form in forms:
            answer = verify(
                canonical(value | {"envelope": value["envelope"] | form}) + b"\n", trusted_keys=(key.public,)
            )
            assert not answer.valid, form
            assert answer.problems[0].where.startswith("envelope"), form


def make_fifo(path: Path) -> Path:
    path.unlink()
    os.mkfifo(path)
    return path


class TestStaleness:
    def test_fresh(self, tmp_path: Path, key: SigningKey) -> None:
        answer = verify(seal(mutate_evidence(), key), trusted_keys=(key.public,), root=plant(tmp_path))
        assert answer.problems == ()
        assert (answer.valid, answer.stale, answer.signed) == (True, False, True)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda path: path.write_bytes(SOURCE + b"\n"), "bytes have changed"),
            (lambda path: path.write_bytes(SOURCE.replace(b"\n", b"\r\n")), "bytes have changed"),
            (lambda path: path.chmod(0o755), "mode was 0644 and is 0755"),
            (lambda path: path.unlink(), "missing now"),
            (lambda path: (path.unlink(), path.mkdir()), "can't be read"),
            (lambda path: (path.rename(path.with_suffix(".x")), path.symlink_to("value.x")), "can't be read"),
            (make_fifo, "can't be read"),
            (lambda path: path.write_bytes(b"x" * (2 * 1024 * 1024 + 1)), "can't be read"),
        ],
    )
    def test_stale(self, tmp_path: Path, change: Callable[[Path], object], message: str) -> None:
        change(plant(tmp_path) / "src/value.py")
        answer = verify(seal(mutate_evidence()), root=tmp_path)
        assert (answer.valid, answer.stale) == (True, True)
        (problem,) = answer.problems
        assert (problem.code, problem.where) == ("evidence_stale", "src/value.py")
        assert message in problem.message

    def test_a_folder_on_the_way_that_became_a_link(self, tmp_path: Path) -> None:
        (plant(tmp_path) / "src").rename(tmp_path / "real")
        (tmp_path / "src").symlink_to("real")
        assert verify(seal(check_evidence()), root=tmp_path).stale

    def test_a_missing_file_that_appeared(self, tmp_path: Path) -> None:
        manifest = Manifest(
            entries=tuple(entry(path, None if path.startswith("src") else data) for path, data in FILES.items())
        )
        early = check_evidence(manifest=manifest, manifest_digest=manifest.canonical_digest(), unprobed=())
        plant(tmp_path)
        assert "is there now" in verify(seal(early), root=tmp_path).problems[0].message
        (tmp_path / "src/value.py").unlink()
        assert verify(seal(early), root=tmp_path).stale is False

    def test_a_root_that_is_not_there(self, tmp_path: Path) -> None:
        answer = verify(seal(check_evidence()), root=tmp_path / "absent")
        assert (answer.valid, answer.stale) == (True, True)

    def test_invalid_evidence_reads_no_file(self, tmp_path: Path) -> None:
        assert verify(b"{}", root=tmp_path).stale is None

    def test_mutations_are_applied_once_more(self, tmp_path: Path) -> None:
        plant(tmp_path)
        for change, where in (
            (put("mutations", 0, "mutatedSha256", to="0" * 64), "mutations[0].mutatedSha256"),
            (put("mutations", 0, "offsetBytes", to=1), "mutations[0].offsetBytes"),
            (put("mutations", 0, "mutation", "new", to="a * b"), "mutations[0].mutatedSha256"),
            (put("mutations", 0, "mutation", "old", to="absent"), "mutations[0].offsetBytes"),
            (put("mutations", 0, "mutation", "old", to="a"), "mutations[0].offsetBytes"),
        ):
            raw = forged(mutate_evidence(), change)
            assert verify(raw).valid, "only the files can show it"
            found(raw, where, root=tmp_path)

    @pytest.mark.parametrize(
        ("old", "cause", "holds"),
        [
            ("absent", "old-absent", True),
            ("a + b", "old-absent", False),
            ("a", "old-not-unique", True),
            ("a + b", "old-not-unique", False),
            ("absent", "old-not-unique", False),
            ("a + b", "not-utf-8", False),
        ],
    )
    def test_refusals_are_checked_once_more(self, tmp_path: Path, old: str, cause: str, *, holds: bool) -> None:
        asked = mutation(1)
        refused = asked.model_copy(
            update={
                "mutation": asked.mutation.model_copy(update={"old": old}),
                "before": None,
                "mutated": None,
                "after": None,
                "offset_bytes": None,
                "original_sha256": None,
                "mutated_sha256": None,
                "restored_sha256": None,
                "restored_mode": None,
                "deadline_ms": None,
                "verdict": "not-applied",
                "cause": cause,
            }
        )
        evidence = mutate_evidence(
            0,
            mutations=(refused,),
            unprobed=("src/value.py",),
            status="refused",
            code="mutation_not_applied",
        )
        assert verify(seal(evidence)).problems == ()
        answer = verify(seal(evidence), root=plant(tmp_path))
        assert answer.valid is holds


def test_verification_imports_no_sandbox_code() -> None:
    program = "import sys, firsthand.evidence; print([m for m in sys.modules if m.startswith('firsthand.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in ast.literal_eval(done.stdout)}
    assert rooms == {"canonical", "definition", "errors", "evidence", "files", "records", "rules"}
