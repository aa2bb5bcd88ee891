from __future__ import annotations

import pytest

from firsthand.records import RunnerName
from firsthand.rules import repeats_control, signature
from rules.forge import counts, exited, red, run


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("SyntaxError: invalid syntax", "IndentationError: unexpected indent", True),
        ("SyntaxError: Unexpected token ')'", "ERR_MODULE_NOT_FOUND: no", True),
        ("ImportError: cannot import name 'x'", "SyntaxError: bad", True),
        ("AssertionError: 1 != 2", "AssertionError: 1 != 3", False),
        ("ValueError: at 0x7f00", "ValueError: at 0x8f11", True),
        ("KeyError: line 3", "KeyError: line 33", True),
        ("boom at value.py:3", "boom at value.py:44:2", True),
        ("AssertionError: 3", "assert 3", False),
    ],
)
def test_accidents_are_left_out_of_a_failure(one: str, other: str, *, same: bool) -> None:
    assert (signature(one) == signature(other)) is same


LOADS_NOT = "SyntaxError: unmatched ')'"


@pytest.mark.parametrize(
    ("mutated", "control", "same"),
    [
        # The same test fails in the same way.
        ({"t::a": "SyntaxError: x"}, {"t::a": LOADS_NOT}, True),
        ({"t::a": "AssertionError: 1"}, {"t::a": "AssertionError: 1"}, True),
        # The same test fails in another way, or another test fails.
        ({"t::a": "AssertionError: 1"}, {"t::a": LOADS_NOT}, False),
        ({"t::b": "SyntaxError: x"}, {"t::a": LOADS_NOT}, False),
        # One more failure of its own is enough.
        ({"t::a": "SyntaxError: x", "t::b": "AssertionError: 1"}, {"t::a": LOADS_NOT, "t::b": LOADS_NOT}, False),
        # Exactly the control's tests, all by one exception that is no assertion: raised while it was loaded.
        ({"t::a": "TypeError: x", "t::b": "TypeError: x"}, {"t::a": LOADS_NOT, "t::b": LOADS_NOT}, True),
        ({"t::a": "NameError: x"}, {"t::a": LOADS_NOT}, True),
        ({"t::a": "TypeError: x"}, {"t::a": LOADS_NOT}, False),
        ({"t::a": "TypeError: x", "t::b": "TypeError: y"}, {"t::a": LOADS_NOT, "t::b": LOADS_NOT}, False),
        ({"t::a": "AssertionError", "t::b": "AssertionError"}, {"t::a": LOADS_NOT, "t::b": LOADS_NOT}, False),
        ({"t::a": "NameError: x"}, {"t::a": LOADS_NOT, "t::b": LOADS_NOT}, False),
        # A control that failed without naming a test takes nothing away.
        ({"t::a": "AssertionError: 1"}, {}, False),
    ],
)
def test_a_failure_repeats_the_controls_or_not(mutated: dict[str, str], control: dict[str, str], *, same: bool) -> None:
    assert repeats_control(red(3, failed=mutated), red(2, "control", control)) is same


def test_a_cut_list_of_the_control_is_no_way_out() -> None:
    many = {f"t::{number:03}": LOADS_NOT for number in range(64)}
    control = red(2, "control", many, executed=100, total_failed=100)
    assert repeats_control(red(3, failed={"t::zzz": "SyntaxError: x"}), control)
    assert not repeats_control(red(3, failed={"t::zzz": "AssertionError: x"}), control)


def test_a_run_without_counts_repeats_nothing() -> None:
    unreadable = run(3, "mutated", ended=exited(1), tests=None)
    assert not repeats_control(unreadable, red(2, "control"))
    assert not repeats_control(red(3), run(2, "control", ended=exited(2), tests=None))
    assert not repeats_control(run(3, "mutated", ended=exited(1), tests=counts()), red(2, "control"))


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        ((1, "Traceback\nSyntaxError: x\n"), (1, "SyntaxError: y\n"), True),
        ((1, "AssertionError\n"), (1, "SyntaxError: y\n"), False),
        ((1, "sh: AssertionError\n"), (1, "sh: AssertionError\n"), False),
        ((2, "SyntaxError: x\n"), (1, "SyntaxError: x\n"), False),
        ((1, ""), (1, ""), False),
        ((1, "ValueError: 3\n"), (1, "ValueError: 3\n"), True),
    ],
)
def test_plain_exit_codes_are_told_apart_by_their_last_error_line(
    ours: tuple[int, str], theirs: tuple[int, str], *, same: bool
) -> None:
    runner: RunnerName = "exit"
    mutated = run(3, "mutated", ended=exited(ours[0]), runner=runner, stderr=ours[1])
    control = run(2, "control", ended=exited(theirs[0]), runner=runner, stderr=theirs[1])
    assert repeats_control(mutated, control) is same
