"""The questions, and what dropping any part of the template does to their answers. Text only: no Mac is claimed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from backends.seatbelt.oracle import Oracle, Subject, levels_of
from backends.seatbelt.questions import LAYOUTS, Question, ask, questions
from backends.seatbelt.sbpl import Rule, SBPLError, read_rules
from firsthand_seatbelt.profile import ProfileTemplate


@cache
def rules_of(layout: str) -> tuple[Rule, ...]:
    profile = ProfileTemplate.shipped().render(LAYOUTS[layout])
    return read_rules(profile.text, dict(profile.parameters))


def wrong_answers(change: dict[str, tuple[Rule, ...]]) -> Iterator[Question]:
    for question in questions():
        if ask(Oracle(change[question.layout]), question) != question.allowed:
            yield question


class TestTheProfile:
    @pytest.mark.parametrize("question", questions(), ids=str)
    def test_answers(self, question: Question) -> None:
        assert ask(Oracle(rules_of(question.layout)), question) == question.allowed

    def test_there_are_enough_questions_of_both_kinds(self) -> None:
        allowed = [question.allowed for question in questions()]
        assert len(allowed) >= 120
        assert min(allowed.count(True), allowed.count(False)) >= 60
        assert len(set(questions())) == len(allowed)

    def test_the_order_of_the_rules_says_the_same_as_their_levels(self) -> None:
        """Whoever reads the file by "the last matching rule wins" reads the same policy."""
        for question in questions():
            assert ask(Oracle(rules_of(question.layout), last_match_wins=True), question) == question.allowed, question

    def test_a_literal_grants_nothing_below_itself(self) -> None:
        for layout in LAYOUTS:
            oracle = Oracle(rules_of(layout))
            for rule in rules_of(layout):
                for one in rule.filters:
                    if one.kind == "literal":
                        below = one.value.rstrip("/") + "/firsthand-canary"
                        assert not oracle.allows("file-read-data", Subject(path=below)), one
                        assert not oracle.allows("file-write-create", Subject(path=below)), one

    def test_nothing_that_may_never_be_allowed_is_named_in_an_allowing_rule(self) -> None:
        never = (
            "network",
            "mach",
            "iokit",
            "sysctl-write",
            "system-socket",
            "pseudo-tty",
            "lsopen",
            "appleevent",
            "job",
        )
        for rule in rules_of("clt"):
            if rule.action == "allow":
                assert not [name for name in rule.operations if name.startswith(never) or name == "default"]


class TestDroppingAPart:
    """A rule that no question misses is either useless or untested; there is none."""

    def test_the_whole_template_gives_no_wrong_answer(self) -> None:
        assert list(wrong_answers({name: rules_of(name) for name in LAYOUTS})) == []

    def test_every_rule_is_missed(self) -> None:
        count = len(rules_of("clt"))
        assert {len(rules_of(layout)) for layout in LAYOUTS} == {count}
        for index in range(1, count):
            without = {name: rules_of(name)[:index] + rules_of(name)[index + 1 :] for name in LAYOUTS}
            assert next(wrong_answers(without), None), rules_of("clt")[index]

    def test_without_the_default_everything_would_be_open(self) -> None:
        opened = {name: (replace(rules_of(name)[0], action="allow"), *rules_of(name)[1:]) for name in LAYOUTS}
        assert len(list(wrong_answers(opened))) > 60

    def test_every_filter_is_missed(self) -> None:
        written = dict.fromkeys(
            (index, one.written)
            for name in LAYOUTS
            for index, rule in enumerate(rules_of(name))
            for one in rule.filters
            if 'param "ABOVE' not in one.written  # the ancestors of one layout are named differently in another
        )
        for index, text in written:
            without = {
                name: tuple(
                    replace(rule, filters=tuple(one for one in rule.filters if one.written != text) or _NEVER)
                    if position == index
                    else rule
                    for position, rule in enumerate(rules_of(name))
                )
                for name in LAYOUTS
            }
            assert next(wrong_answers(without), None), (index, text)

    def test_every_operation_is_missed(self) -> None:
        for index, rule in enumerate(rules_of("clt")):
            if len(rule.operations) == 1:
                continue  # dropping it is dropping the rule
            for operation in rule.operations:
                without = {
                    name: tuple(
                        replace(one, operations=tuple(left for left in one.operations if left != operation))
                        if position == index
                        else one
                        for position, one in enumerate(rules_of(name))
                    )
                    for name in LAYOUTS
                }
                assert next(wrong_answers(without), None), (index, operation)


_NEVER = read_rules('(version 1)(deny default)(allow signal (target self) (literal "/x"))', {})[1].filters[:1]
_NEVER = (replace(_NEVER[0], kind="sysctl-name", value="no such name"),)


class TestTheOracleItself:
    def answer(self, rules: str, operation: str, **subject: str) -> bool:
        return Oracle.of(f"(version 1)(deny default){rules}", {}).allows(operation, Subject(**subject))

    def test_an_operations_own_rules_come_before_its_wildcards(self) -> None:
        assert levels_of("file-read-data") == ["file-read-data", "file-read*", "file*", "default"]
        assert not self.answer('(deny file-read-data)(allow file-read* (subpath "/a"))', "file-read-data", path="/a/b")

    def test_a_later_deny_of_a_wildcard_does_not_close_a_named_member(self) -> None:
        """Why nothing is imported: denying mach* afterwards would not close what system.sb allows by name."""
        assert self.answer("(allow mach-lookup)(deny mach*)", "mach-lookup", name="x")

    def test_a_filtered_rule_comes_before_an_unfiltered_one_of_its_level(self) -> None:
        assert self.answer('(allow file-read* (literal "/a"))(deny file-read*)', "file-read-data", path="/a")

    def test_the_last_matching_filtered_rule_wins(self) -> None:
        text = '(allow file-read* (subpath "/a"))(deny file-read* (subpath "/a/b"))'
        assert self.answer(text, "file-read-data", path="/a/c")
        assert not self.answer(text, "file-read-data", path="/a/b/c")

    def test_subpath_goes_by_components_and_includes_the_folder(self) -> None:
        text = '(allow file-read* (subpath "/a/b"))'
        assert self.answer(text, "file-read-data", path="/a/b")
        assert not self.answer(text, "file-read-data", path="/a/bc")

    @pytest.mark.parametrize(
        "operation", ["nvram-get", "iokit-get-properties", "file-map-executable", "process-info-pidinfo"]
    )
    def test_some_operations_are_open_until_closed_by_name(self, operation: str) -> None:
        assert self.answer("", operation)
        assert not self.answer(f"(deny {operation})", operation)

    def test_the_wildcard_alone_does_not_close_process_arguments(self) -> None:
        assert self.answer("(deny process-info*)", "process-info-pidinfo", target="others")

    def test_an_exact_sysctl_name_never_matches_a_read_of_arguments(self) -> None:
        text = '(allow sysctl-read)(deny sysctl-read (sysctl-name "kern.procargs2"))'
        assert self.answer(text, "sysctl-read", name="kern.procargs2.4711")

    @pytest.mark.parametrize(
        "text",
        [
            '(allow file-read* (regex #"^/a"))',
            '(import "system.sb")',
            "(allow file-reed*)",
            '(allow file-read* (literal "/a/../b"))',
            '(allow file-read* (subpath "/a/"))',
            '(allow file-read* (subpath "a"))',
            '(allow file-read* (literal (param "UNSET")))',
            '(allow file-read* (literal "/\u00e9"))',
            '(allow file-read* (require-all (literal "/a")))',
            "(allow (with no-sandbox) process-exec)",
            "(allow signal (target children))",
            "(allow signal",
            "(allow signal))",
            '(allow file-read* (literal "/a\\n"))',
            '(allow file-read* (literal (string-append "/a" "/b")))',
            "(debug deny)",
            "(allow)",
        ],
    )
    def test_anything_else_is_refused(self, text: str) -> None:
        with pytest.raises(SBPLError):
            self.answer(text, "file-read-data", path="/a")

    @pytest.mark.parametrize("text", ["", "(version 1)", "(version 2)(deny default)", "(version 1)(allow default)"])
    def test_a_profile_without_its_head_is_refused(self, text: str) -> None:
        with pytest.raises(SBPLError):
            read_rules(text, {})

    def test_unknown_operations_and_odd_paths_are_no_questions(self) -> None:
        with pytest.raises(SBPLError):
            self.answer("", "file-raed-data")
        with pytest.raises(SBPLError):
            self.answer("", "file-read-data", path="/a//b")
