"""Coarse guards: several times the reach, so that a loaded machine does not fail them but a slow algorithm does."""

from __future__ import annotations

import time
from collections.abc import Callable

from evidence.builder import mutate_evidence
from evidence.vectors import published_key
from firsthand.evidence import seal, verify


def best_ms(work: Callable[[], object], times: int = 7) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found) * 1000


def test_verification_of_32_mutations() -> None:
    """Reach: 20 ms."""
    key = published_key()
    raw = seal(mutate_evidence(32), key)
    assert verify(raw, trusted_keys=(key.public,)).signed
    assert best_ms(lambda: verify(raw, trusted_keys=(key.public,))) < 80


def test_a_signature() -> None:
    """Reach: 5 ms."""
    key = published_key()
    evidence = mutate_evidence(32)
    plain = best_ms(lambda: seal(evidence))
    assert best_ms(lambda: seal(evidence, key)) - plain < 20


def test_a_plan_of_200() -> None:
    raw = seal(mutate_evidence(200))
    assert best_ms(lambda: verify(raw), times=1) < 10_000
