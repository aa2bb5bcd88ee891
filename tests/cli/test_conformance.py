"""`firsthand conformance` on what can't be examined; a whole battery is in `tests/contract`."""

from __future__ import annotations

from pathlib import Path

import pytest

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


@pytest.mark.parametrize("kind", ["file", "link", "no folder"])
def test_a_report_is_written_over_nothing(cold: Program, tmp_path: Path, kind: str) -> None:
    precious, out = tmp_path / "precious", tmp_path / "out.json"
    precious.write_text("of the user")
    if kind == "file":
        out = precious
    elif kind == "link":
        out.symlink_to(precious)
    else:
        out = tmp_path / "absent" / "out.json"
    answer = cold("conformance", "unavailable", "--out", out, cwd=tmp_path)
    assert (answer.status, "Traceback" in answer.err) == (2, False)
    assert str(out) in answer.err
    assert precious.read_text() == "of the user"


def test_a_demonstration_is_told_in_a_new_folder_only(cold: Program, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("absent")
    for place in (tmp_path, tmp_path / "link", tmp_path / "no" / "folder"):
        answer = cold("demo", "--keep", place, cwd=tmp_path)
        assert (answer.status, "Traceback" in answer.err) == (2, False)
    assert not (tmp_path / "absent").exists()
