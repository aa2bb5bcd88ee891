"""The quick part of the corpus; `python tests/truth/run.py --rounds N` runs all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from checks.yard import real_backend
from truth.case import Case
from truth.corpus import CORPUS

QUICK = [case for case in CORPUS if case.quick]


@pytest.mark.skipif(isinstance(real_backend(), str), reason=f"no sandbox here: {real_backend()}")
@pytest.mark.parametrize("case", QUICK, ids=lambda case: case.name)
def test_what_is_said_of_a_hostile_suite_is_true(case: Case, tmp_path: Path) -> None:
    if case.needs:
        pytest.skip(case.needs)
    assert case.observe(tmp_path) in case.expected


def test_every_suite_has_a_name_of_its_own_and_an_expectation() -> None:
    assert len({case.name for case in CORPUS}) == len(CORPUS)
    assert all(case.expected for case in CORPUS)


def test_the_corpus_holds_catches_survivors_and_green_suites_too() -> None:
    # A judge that calls everything inconclusive would pass otherwise.
    verdicts = {verdict for case in CORPUS for verdict, _ in case.expected}
    assert {"detected", "survived", "passed", "timeout", "crash", "not-exercised", "inconclusive"} <= verdicts
