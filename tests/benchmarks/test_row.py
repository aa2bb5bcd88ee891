from __future__ import annotations

import pytest
from benchmarks.harness.row import Row, Samples

OWN = Samples("own", (12.0, 10.0, 14.0))
OTHER = Samples("other", (8.0, 9.0, 10.0))


def test_a_ratio_is_made_of_medians_and_of_minima() -> None:
    row = Row("x", OWN, OTHER, "ratio")
    assert row.by_median == pytest.approx(12 / 9)
    assert row.by_least == pytest.approx(10 / 8)


def test_added_is_a_difference() -> None:
    row = Row("x", OWN, OTHER, "added")
    assert (row.by_median, row.by_least) == (3.0, 2.0)


def test_a_side_alone_is_its_own_figure() -> None:
    row = Row("x", OWN, None, "own")
    assert (row.by_median, row.by_least) == (12.0, 10.0)


@pytest.mark.parametrize(("limit", "verdict"), [(None, ""), (3.0, "within"), (2.5, "within by minimum"), (1.9, "over")])
def test_the_verdict_says_which_figure_holds(limit: float | None, verdict: str) -> None:
    assert Row("x", OWN, OTHER, "added", limit=limit).verdict == verdict


def test_a_row_without_values_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        Row("x", Samples("own", ()), OTHER, "ratio")
    with pytest.raises(ValueError, match="no values"):
        Row("x", OWN, Samples("other", ()), "ratio")


def test_sides_and_figure_have_to_agree() -> None:
    with pytest.raises(ValueError, match="needs two sides"):
        Row("x", OWN, None, "ratio")
    with pytest.raises(ValueError, match="needs one side"):
        Row("x", OWN, OTHER, "own")


def test_seconds_become_milliseconds() -> None:
    assert Samples.of_seconds("own", (0.5, 0.25)).values == (500.0, 250.0)
