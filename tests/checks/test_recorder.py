from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from checks.yard import Kept
from firsthand.checks import Recorder

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rules.forge import TABLE, run


def test_runs_of_many_threads_are_numbered_without_a_gap() -> None:
    kept = Kept()
    recorder = Recorder(kept)

    def work(lane: int) -> list[int]:
        return [recorder.check_run(lambda number: run(number, lane=lane), TABLE).run for _ in range(200)]

    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(work, range(4)))
    assert [each.run for each in kept.runs] == list(range(1, 801))
    assert all(each == sorted(each) for each in numbers)
    assert recorder.names == {TABLE.digest: TABLE}
