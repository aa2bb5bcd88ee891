from __future__ import annotations

from typing import Any

from firsthand.records import CheckRun, MutationRun
from firsthand.rules import latest_unmodified, standing_catches, unprobed_paths, voids
from rules.forge import counts, manifest, mutation_run, red, run


def caught(**fields: Any) -> MutationRun:
    return mutation_run(before=1, mutated=3, after=4, **fields)


SERIES: tuple[CheckRun, ...] = (run(1), red(2, "control"), red(3), run(4, "restored"))


def test_only_unmodified_runs_speak_for_a_check_and_the_highest_number_decides() -> None:
    late = red(5, "restored")
    assert latest_unmodified(SERIES) == {"c": SERIES[3]}
    assert latest_unmodified((late, *SERIES)) == {"c": late}
    assert latest_unmodified(SERIES[1:3]) == {}


def test_a_catch_stands_while_no_later_unmodified_run_is_red() -> None:
    assert standing_catches([caught()], SERIES) == (caught(),)
    # Red on a mutation or a control is what they are for.
    assert standing_catches([caught()], (*SERIES, red(5), red(6, "control"))) == (caught(),)


def test_a_later_red_baseline_takes_earlier_catches_back_for_good() -> None:
    broken = (*SERIES, red(5, "baseline"))
    assert standing_catches([caught()], broken) == ()
    # A green run after it speaks for the check again, not for the old catch.
    again = (*broken, run(6))
    assert latest_unmodified(again)["c"].status == "passed"
    assert standing_catches([caught()], again) == ()


def test_an_inconclusive_baseline_takes_catches_back_as_well() -> None:
    assert standing_catches([caught()], (*SERIES, run(5, tests=counts(complete=False)))) == ()


def test_what_came_before_or_belongs_to_another_check_takes_nothing_back() -> None:
    earlier = red(1, "baseline")
    assert standing_catches([mutation_run(before=2)], (earlier, run(2))) == (mutation_run(before=2),)
    assert standing_catches([caught()], (*SERIES, run(5, check="other", tests=counts({"t::a": "x"})))) == (caught(),)


def test_a_run_voids_exactly_earlier_success_of_its_check() -> None:
    assert voids(red(5, "baseline"), caught())
    assert not voids(run(5), caught())
    assert not voids(red(5, "mutated"), caught())
    assert not voids(red(1, "baseline"), caught())
    assert not voids(red(5, "baseline"), caught(mutation=caught().mutation.model_copy(update={"check": "x"})))


def test_a_path_is_unprobed_until_a_catch_stands() -> None:
    paths = ("src/value.py", "src/missing.py")
    assert unprobed_paths(paths, manifest(), [], SERIES) == ("src/value.py",)
    survivor = caught(verdict="survived", cause="check-stayed-green")
    assert unprobed_paths(paths, manifest(), [survivor], SERIES) == ("src/value.py",)
    assert unprobed_paths(paths, manifest(), [caught()], SERIES) == ()
    assert unprobed_paths(paths, manifest(), [caught()], (*SERIES, red(5, "baseline"))) == ("src/value.py",)
    assert unprobed_paths(paths, manifest(present=False), [], ()) == ()
