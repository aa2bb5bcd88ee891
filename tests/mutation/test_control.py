from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.yard import NODE
from firsthand.mutation import control_of

LINE = b")firsthand control(\n"
PYTHON_FILES = [
    b"",
    b"x = 1\n",
    b'"""Text."""\nx = 1\n',
    b"'''\nopen\n'''",
    b"#!/usr/bin/env python3\nx = 1\n",
    b"#!/usr/bin/env python3",
    b"\xef\xbb\xbfx = 1\r\ny = 2\r\n",
    b"\xef\xbb\xbf#!/usr/bin/python\n",
    b"# -*- coding: latin-1 -*-\nx = '\xe9'\n",
    b"from __future__ import annotations\n",
    b"x = 1 # no end",
    b"x = (\n  1,\n)\n",
    b"\x0c\nx = 1\n",
]


@pytest.mark.parametrize("original", PYTHON_FILES)
def test_no_python_file_compiles_with_it(original: bytes) -> None:
    compile(original, "value.py", "exec")
    with pytest.raises(SyntaxError):
        compile(control_of("value.py", original), "value.py", "exec")


@given(st.binary(max_size=60))
def test_no_bytes_can_take_the_line_in(original: bytes) -> None:
    with pytest.raises((SyntaxError, ValueError)):
        compile(control_of("value.py", original), "value.py", "exec")


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize(
    "original",
    [
        b"",
        b"export const x = 1;\n",
        b"#!/usr/bin/env node\nexport {};\n",
        b"/* text */",
        b"'use strict';\r\n",
        b"\xef\xbb\xbf1;\n",
    ],
)
def test_no_script_loads_with_it(original: bytes, tmp_path: Path) -> None:
    assert NODE is not None
    script = tmp_path / "value.mjs"
    for content, loads in ((original, True), (control_of("src/value.mjs", original), False)):
        script.write_bytes(content)
        found = subprocess.run([NODE, "--check", script], capture_output=True, check=False)
        assert (found.returncode == 0) is loads


@pytest.mark.parametrize("original", [b"exit 0\n", b"#!/bin/sh\nexit 0\n", b": '\ntext\n'\n"])
def test_no_shell_script_gets_past_it(original: bytes, tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_bytes(control_of("run.sh", original))
    assert subprocess.run(["/bin/sh", script], capture_output=True, check=False).returncode != 0


def test_an_interpreter_line_and_a_mark_stay_in_front() -> None:
    assert control_of("a.py", b"\xef\xbb\xbf#!/bin/x\ny") == b"\xef\xbb\xbf#!/bin/x\n" + LINE + b"y"
    assert control_of("a.py", b"#!/bin/x") == b"#!/bin/x\n" + LINE


def test_an_inner_attribute_of_rust_is_no_interpreter_line() -> None:
    assert control_of("src/lib.rs", b"#![no_std]\n") == LINE + b"#![no_std]\n"


def test_a_go_file_keeps_what_decides_whether_it_is_built() -> None:
    original = b"//go:build never\n\npackage v"
    assert control_of("v.go", original) == original + b"\n" + LINE


def test_php_is_broken_inside_its_tags() -> None:
    assert control_of("a.php", b"text <?php x();") == b"<?php )firsthand control( ?>\ntext <?php x();"


@pytest.mark.parametrize("path", ["data.csv", "page.html", "Rakefile", "src.py/name", "x.unknown"])
def test_where_the_language_is_not_known_nothing_else_is_left(path: str) -> None:
    assert control_of(path, b"a,b\n1,2\n") == LINE


@given(st.sampled_from(["a.py", "a.go", "a.rs", "a.txt", "a.PY"]), st.binary(max_size=40))
def test_the_file_always_changes(path: str, original: bytes) -> None:
    if original != LINE:
        assert control_of(path, original) != original
