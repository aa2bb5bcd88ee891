"""`firsthand conformance` on what can't be examined; a whole battery is in `tests/contract`."""

from __future__ import annotations

from pathlib import Path

from e2e.program import Program


def test_a_backend_that_is_not_installed(cold: Program, tmp_path: Path) -> None:
    answer = cold("conformance", "absent", "--json", cwd=tmp_path)
    assert (answer.status, answer.json["code"]) == (2, "plugin_invalid")
    assert answer.json["next"]


def test_a_backend_that_can_not_confine_here(cold: Program, tmp_path: Path) -> None:
    answer = cold("conformance", "unavailable", "--json", cwd=tmp_path)
    assert (answer.status, answer.json["code"]) == (3, "review_verification_isolation_unavailable")
    assert answer.json["next"]
    assert cold.sessions() == []
