"""A key's way: made, used to sign, shown, trusted; and what `verify` says at each step."""

from __future__ import annotations

import stat
from pathlib import Path

from e2e.program import Program
from e2e.project import Project


def test_from_a_new_key_to_evidence_that_is_authentic(program: Program, honest: Project, tmp_path: Path) -> None:
    key, public = tmp_path / "key.pem", tmp_path / "key.pub"
    made = program("keys", "new", key, "--json", cwd=tmp_path)
    assert made.status == 0
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert "PRIVATE" not in made.out
    public.write_text(program("keys", "show", key, cwd=tmp_path).out)
    assert "PUBLIC KEY" in public.read_text()
    checked = program("check", "--sign", key, "--json", cwd=honest.root)
    assert checked.status == 0
    evidence = checked.json["evidence"]

    unknown = program("verify", evidence, "--json", cwd=tmp_path)
    assert (unknown.status, unknown.json["valid"], unknown.json["signed"]) == (0, True, False)
    assert "not authentic" in unknown.json["authenticity"]
    named = program("verify", evidence, "--key", public, "--json", cwd=tmp_path)
    assert (named.status, named.json["signed"]) == (0, True)
    assert named.json["keyId"] == made.json["keyId"]
    assert program("keys", "trust", public, cwd=tmp_path).status == 0
    trusted = program("verify", evidence, "--json", cwd=tmp_path)
    assert (trusted.status, trusted.json["signed"]) == (0, True)

    other = tmp_path / "other.pem"
    assert program("keys", "new", other, cwd=tmp_path).status == 0
    (tmp_path / "other.pub").write_text(program("keys", "show", other, cwd=tmp_path).out)
    wrong = program(
        "verify", evidence, "--key", tmp_path / "other.pub", "--state", tmp_path / "s", "--json", cwd=tmp_path
    )
    assert (wrong.status, wrong.json["signed"]) == (1, False)


def test_a_key_is_never_written_over(cold: Program, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    assert cold("keys", "new", key, cwd=tmp_path).status == 0
    before = key.read_bytes()
    again = cold("keys", "new", key, "--json", cwd=tmp_path)
    assert (again.status, again.json["code"]) == (2, "key_invalid")
    assert key.read_bytes() == before
