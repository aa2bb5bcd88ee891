"""Evidence of another definition; every forgery here is resealed, so no digest gives it away."""

from __future__ import annotations

from typing import Any

import pytest

from evidence.builder import (
    FILES,
    check_evidence,
    definition,
    forged,
    mutate_evidence,
    rebind,
    run,
)
from evidence.judging import Change, found, put
from evidence.reviews import review_evidence
from firsthand.evidence import verify
from firsthand.records import Evidence


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
