"""Excerpts and order within a lane."""

from __future__ import annotations

from typing import Any

import pytest

from evidence.builder import (
    check_evidence,
    digest,
    forged,
    interleaved_evidence,
)
from evidence.judging import Change, found, put
from firsthand.checks.excerpt import EXCERPT_BYTES
from firsthand.evidence import verify
from firsthand.evidence.runs import LIMIT_EXCERPT_BYTES


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
