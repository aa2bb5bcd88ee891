"""Files that changed since, and what they show of the mutations."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from evidence.builder import (
    FILES,
    SOURCE,
    check_evidence,
    entry,
    forged,
    mutate_evidence,
    mutation,
    plant,
)
from evidence.judging import found, put
from evidence.vectors import published_key
from firsthand.evidence import seal, verify
from firsthand.records import Manifest


def make_fifo(path: Path) -> Path:
    path.unlink()
    os.mkfifo(path)
    return path


class TestStaleness:
    def test_fresh(self, tmp_path: Path) -> None:
        key = published_key()
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
