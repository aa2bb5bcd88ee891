from __future__ import annotations

import re
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.seatbelt.oracle import Oracle, Subject
from backends.seatbelt.questions import LAYOUTS
from backends.seatbelt.sbpl import read_rules
from firsthand.isolation.interface import IsolationError
from firsthand_seatbelt.profile import Grants, ProfileTemplate, refuse_unset

TEMPLATE = ProfileTemplate.shipped()
PLAIN = Grants(copy="/s/copy", home="/s/h", tmpdir="/s/t", roots=("/opt/tool",), links=("/opt/link",))

PATHS = st.lists(
    st.text(
        st.characters(min_codepoint=0x20, max_codepoint=0x7E, exclude_characters="/"), min_size=1, max_size=12
    ).filter(lambda part: part not in {".", ".."}),
    min_size=1,
    max_size=5,
).map(lambda parts: "/" + "/".join(parts))


class TestTheTemplate:
    def test_is_short_and_plain(self) -> None:
        lines = TEMPLATE.source.splitlines()
        assert len(lines) < 150
        assert max(map(len, lines)) <= 120
        assert TEMPLATE.source.isascii()

    def test_every_rule_stands_under_its_reason(self) -> None:
        """Each group of rules begins with a comment; the groups are divided by empty lines."""
        text = TEMPLATE.render(PLAIN).text
        groups = [group for group in text.split("\n\n") if group.strip()]
        assert all(group.lstrip().startswith(";;") for group in groups)
        assert len(groups) >= 12

    def test_imports_nothing_and_uses_no_pattern(self) -> None:
        code = "\n".join(line for line in TEMPLATE.source.splitlines() if not line.startswith(";;"))
        assert not re.search(r"import|regex|no-sandbox|with |string-append|#\"", code)

    def test_nothing_but_parameter_names_is_put_in(self) -> None:
        assert set(re.findall(r"{{(.*?)}}", TEMPLATE.source)) == {" name "}
        puts = [line for line in TEMPLATE.source.splitlines() if "{{" in line]
        assert all('(param "{{ name }}")' in line for line in puts)


class TestRendering:
    def test_no_path_is_in_the_text(self) -> None:
        profile = TEMPLATE.render(replace(PLAIN, copy='/x/"))(allow default)(allow file-read* (subpath "/y'))
        assert "/x/" not in profile.text
        assert "allow default" not in profile.text
        assert dict(profile.parameters)["COPY"] == '/x/"))(allow default)(allow file-read* (subpath "/y'

    def test_the_options_are_those_of_sandbox_exec(self) -> None:
        profile = TEMPLATE.render(PLAIN)
        options = profile.options()
        assert options[:2] == ["-p", profile.text]
        assert options[2::2] == ["-D"] * len(profile.parameters)
        assert options[3::2][:4] == ["COPY=/s/copy", "HOME=/s/h", "TMPDIR=/s/t", "ROOT_0=/opt/tool"]

    @settings(deadline=None)
    @given(PATHS, PATHS, st.lists(PATHS, max_size=4))
    def test_only_the_granted_can_be_written(self, copy: str, other: str, roots: list[str]) -> None:
        """Whatever ASCII the names are made of."""
        grants = Grants(f"/c{copy}", f"/h{copy}", f"/t{copy}", roots=tuple(f"/r{root}" for root in roots))
        profile = TEMPLATE.render(grants)
        oracle = Oracle.of(profile.text, dict(profile.parameters))
        assert oracle.allows("file-write-create", Subject(path=f"/c{copy}/x"))
        assert not oracle.allows("file-write-create", Subject(path=f"/o{other}"))
        assert not oracle.allows("file-read-data", Subject(path=f"/o{other}"))
        for root in roots:
            assert oracle.allows("file-read-data", Subject(path=f"/r{root}/x"))
            assert not oracle.allows("file-write-data", Subject(path=f"/r{root}/x"))

    @pytest.mark.parametrize("layout", sorted(LAYOUTS))
    def test_every_parameter_is_used_and_every_used_one_is_set(self, layout: str) -> None:
        profile = TEMPLATE.render(LAYOUTS[layout])
        assert set(re.findall(r'param "(\w+)"', profile.text)) == set(dict(profile.parameters))

    def test_grants_without_roots_and_links_are_a_profile_too(self) -> None:
        profile = TEMPLATE.render(Grants("/c", "/h", "/t"))
        assert len(read_rules(profile.text, dict(profile.parameters))) == len(
            read_rules(TEMPLATE.render(PLAIN).text, dict(TEMPLATE.render(PLAIN).parameters))
        )

    def test_it_takes_less_than_5_ms_once_compiled(self) -> None:
        grants = replace(PLAIN, roots=tuple(f"/opt/tools/{number}/lib" for number in range(30)))
        TEMPLATE.render(grants)
        taken = []
        for _ in range(20):
            begun = time.perf_counter()
            TEMPLATE.render(grants).options()
            taken.append(time.perf_counter() - begun)
        assert min(taken) < 0.005


class TestRefusals:
    @pytest.mark.parametrize("path", ["/", "relative", "/a/", "/a//b", "/a/./b", "/a/../b", "/a/..", ""])
    def test_paths_that_are_not_in_the_kernels_spelling(self, path: str) -> None:
        for grants in (replace(PLAIN, copy=path), replace(PLAIN, roots=(path,)), replace(PLAIN, links=(path,))):
            with pytest.raises(IsolationError, match="resolved absolute paths"):
                TEMPLATE.render(grants)

    @pytest.mark.parametrize("path", ["/a\nb", "/jos\u00e9", "/" + "a" * 1100, "/a\0b"])
    def test_paths_that_cant_be_expressed(self, path: str) -> None:
        for grants in (replace(PLAIN, home=path), replace(PLAIN, roots=(path,)), replace(PLAIN, links=(path,))):
            with pytest.raises(IsolationError, match="can't be confined by Seatbelt"):
                TEMPLATE.render(grants)

    @pytest.mark.parametrize("root", ["/s", "/s/copy", "/s/copy/node_modules", "/s/h", "/s/t/x"])
    def test_a_root_around_or_inside_the_work_area(self, root: str) -> None:
        with pytest.raises(IsolationError, match="inside one another") as caught:
            TEMPLATE.render(replace(PLAIN, roots=(root,)))
        assert root in caught.value.where

    def test_a_root_beside_the_work_area_is_fine(self) -> None:
        TEMPLATE.render(replace(PLAIN, roots=("/s/copy2", "/s/hh")))

    def test_a_parameter_without_a_value(self) -> None:
        with pytest.raises(IsolationError, match="UNSET"):
            refuse_unset('(allow file-read* (subpath (param "UNSET")))', [])
        with pytest.raises(IsolationError, match="FORGOTTEN"):
            ProfileTemplate(TEMPLATE.source + '(allow file-read* (subpath (param "FORGOTTEN")))').render(PLAIN)

    def test_a_value_without_a_parameter(self) -> None:
        with pytest.raises(IsolationError, match="COPY"):
            ProfileTemplate(TEMPLATE.source.replace('"COPY"', '"HOME"')).render(PLAIN)

    def test_a_variable_that_the_template_invents(self) -> None:
        import jinja2  # noqa: PLC0415 # as the code does: only when rendering

        with pytest.raises(jinja2.UndefinedError):
            ProfileTemplate("{{ nothing }}").render(PLAIN)

    def test_more_paths_than_a_command_line_should_hold(self) -> None:
        with pytest.raises(IsolationError, match="at most 500"):
            TEMPLATE.render(replace(PLAIN, roots=tuple(f"/r/{number}" for number in range(600))))


class TestDigest:
    def test_any_change_of_the_template_changes_it(self) -> None:
        assert ProfileTemplate(TEMPLATE.source + "\n").digest != TEMPLATE.digest
        assert ProfileTemplate.shipped().digest == TEMPLATE.digest
