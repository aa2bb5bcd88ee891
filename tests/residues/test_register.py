from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand.errors import StateError
from firsthand.residues.identity import ProcessIdentity
from firsthand.residues.register import Register, read_register

FULL = """\
{"kind":"tree","path":"1-copy"}
{"kind":"credential","path":"1-copy/token"}
{"kind":"process-intent","token":"t0000000000000000"}
{"boot":"b","kind":"process","pid":"12","start":"99"}
{"boot":"b","kind":"process","pid":"13","start":"100"}
{"kind":"ended","pid":"12"}
{"kind":"kept","path":"1-copy","reason":"why"}
"""


def test_what_is_written_is_read(tmp_path: Path) -> None:
    register = Register(tmp_path / "r")
    register.append(kind="tree", path="1-copy")
    register.append(kind="credential", path="1-copy/token")
    register.append(kind="process-intent", token="t0000000000000000")
    register.append(kind="process", pid="12", start="99", boot="b")
    register.append(kind="process", pid="13", start="100", boot="b")
    register.append(kind="ended", pid="12")
    register.append(kind="kept", path="1-copy", reason="why")
    register.close()
    assert (tmp_path / "r").read_text() == FULL
    assert (tmp_path / "r").stat().st_mode & 0o777 == 0o600
    entries = read_register(tmp_path / "r")
    assert entries.trees == ["1-copy"]
    assert entries.credentials == ["1-copy/token"]
    assert entries.tokens == ["t0000000000000000"]
    assert entries.running == [ProcessIdentity(pid=13, start="100", boot="b")]
    assert entries.kept == {"1-copy": "why"}


def test_a_pid_that_comes_back_is_running_again(tmp_path: Path) -> None:
    register = Register(tmp_path / "r")
    register.append(kind="process", pid="12", start="1", boot="b")
    register.append(kind="ended", pid="12")
    register.append(kind="process", pid="12", start="2", boot="b")
    register.close()
    assert read_register(tmp_path / "r").running == [ProcessIdentity(pid=12, start="2", boot="b")]


@given(cut=st.integers(min_value=0, max_value=len(FULL)))
def test_a_cut_at_any_byte_loses_at_most_the_last_entry(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "r"
    path.write_text(FULL[:cut])
    entries = read_register(path)
    whole = FULL[:cut].count("\n")
    assert len(entries.trees) >= (whole > 0)
    assert len(entries.credentials) >= (whole > 1)
    assert len(entries.tokens) >= (whole > 2)
    # What a longer register knows is known by every later writer too: it appends after the torn line.
    with path.open("a") as file:
        file.write('\n{"kind":"tree","path":"2-late"}\n')
    assert "2-late" in read_register(path).trees


@given(raw=st.binary(max_size=200))
def test_any_bytes_can_be_read(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.mktemp("raw") / "r"
    path.write_bytes(raw + b"\n" + FULL.encode())
    assert read_register(path).credentials == ["1-copy/token"]


@pytest.mark.parametrize(
    "line",
    ["[]", "1", "{}", '{"kind":"later"}', '{"kind":"process","pid":"-1","start":"1","boot":"b"}', '{"kind":"tree"}'],
)
def test_unknown_and_incomplete_entries_are_passed_over(tmp_path: Path, line: str) -> None:
    (tmp_path / "r").write_text(f"{line}\n{FULL}")
    assert read_register(tmp_path / "r").trees == ["1-copy"]
    assert len(read_register(tmp_path / "r").running) == 1


def test_a_register_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read_register(tmp_path / "r").trees == []


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux")
def test_what_can_not_be_entered_is_an_error(tmp_path: Path) -> None:
    register = Register(tmp_path / "r")
    os.close(register._descriptor)
    register._descriptor = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(StateError, match="No space left"):
        register.append(kind="tree", path="1-copy")
    register.close()


def test_after_a_torn_line_the_next_entry_is_whole(tmp_path: Path) -> None:
    register = Register(tmp_path / "r")
    register.append(kind="tree", path="1-copy")
    # A full disk, as the writer meets it: part of a line is there, and the rest is refused.
    whole = register._descriptor
    os.write(whole, b'{"kind":"tr')
    register._descriptor = os.open(tmp_path / "r", os.O_RDONLY)
    with pytest.raises(StateError):
        register.append(kind="tree", path="2-copy")
    os.close(register._descriptor)
    register._descriptor = whole
    register.append(kind="tree", path="3-copy")
    register.close()
    assert read_register(tmp_path / "r").trees == ["1-copy", "3-copy"]
