"""What is mounted where, and that it can only be read; who the command is."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

if sys.platform != "linux":
    pytest.skip("bubblewrap needs Linux", allow_module_level=True)

PROJECT = "/srv/firsthand-test/project"
DEVICES = {"null", "zero", "full", "random", "urandom", "tty", "pts", "shm"}
WRITABLE = {"/tmp", "/run/home", PROJECT, *(f"/dev/{name}" for name in DEVICES)}


def mounts(bench: Any) -> dict[str, set[str]]:
    """Options of every mount inside, by place."""
    rows = [line.split() for line in bench.run("/usr/bin/cat", "/proc/self/mounts").stdout.data.decode().splitlines()]
    return {row[1]: set(row[3].split(",")) for row in rows}


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    folder = tmp_path / "tools"
    (folder / "one" / "bin").mkdir(parents=True)
    (folder / "one" / "bin" / "tool").write_text("#!/bin/sh\necho tool\n")
    (folder / "one" / "bin" / "tool").chmod(0o755)
    (folder / "other").mkdir()
    (folder / "other" / "secret").write_text("secret")
    return folder


def test_only_the_copy_and_the_scratch_folders_can_be_written(bench: Any) -> None:
    found = mounts(bench)
    assert {place for place, options in found.items() if "rw" in options} == WRITABLE
    assert all("nosuid" in options for options in found.values())
    assert {place for place, options in found.items() if "nodev" not in options} <= {f"/dev/{name}" for name in DEVICES}


def test_roots_and_links_are_shown_as_they_are_and_read_only(make_bench: Callable[..., Any], tools: Path) -> None:
    link = tools / "current"
    bench = make_bench(roots=(tools / "one",), links=((link, "one"),), path=(link / "bin",))
    assert "ro" in mounts(bench)[str(tools / "one")]
    result = bench.shell(f"tool; {link}/bin/tool; readlink {link}; ls {tools}; cat {tools}/other/secret")
    assert result.stdout.data == b"tool\ntool\none\ncurrent\none\n"
    assert result.outcome.exit_code == 1


def test_a_dependency_folder_of_the_source_is_shown_in_the_copy_and_read_only(
    make_bench: Callable[..., Any], tmp_path: Path
) -> None:
    source = tmp_path / "source"
    (source / ".venv" / "bin").mkdir(parents=True)
    (source / ".venv" / "bin" / "x").write_text("from the source\n")
    (source / "b.txt").write_text("of the source, not of the copy")
    bench = make_bench(shown_at=source, in_source=(source / ".venv",))
    assert "ro" in mounts(bench)[str(source / ".venv")]
    result = bench.shell("cat .venv/bin/x a.txt; ls -A")
    assert result.stdout.data == b"from the source\nhello\n.venv\na.txt\n"
    assert bench.shell("echo > .venv/new").outcome.exit_code != 0


def test_a_root_around_the_source_does_not_uncover_it(make_bench: Callable[..., Any], tmp_path: Path) -> None:
    source = tmp_path / "around" / "source"
    source.mkdir(parents=True)
    (source / "untracked").write_text("not registered")
    bench = make_bench(shown_at=source, roots=(tmp_path / "around",))
    assert bench.shell("ls").stdout.data == b"a.txt\n"


def test_the_command_has_no_privilege_left(bench: Any) -> None:
    rows = bench.run("/usr/bin/cat", "/proc/self/status").stdout.data.decode().splitlines()
    status = dict(row.split(":\t", 1) for row in rows if ":\t" in row)
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    if os.geteuid() == 0:
        assert status["Groups"].split() == []
    assert 0 not in map(int, status["Uid"].split())


def test_the_command_is_in_a_session_of_the_sandbox_s_own(bench: Any) -> None:
    fields = bench.run("/usr/bin/cat", "/proc/self/stat").stdout.data.split()
    assert fields[5] == b"1", "process 1 leads the session"


def test_names_and_messages_between_processes_are_apart(bench: Any) -> None:
    kinds = ("ipc", "uts", "net", "pid", "mnt")
    said = bench.shell("; ".join(f"readlink /proc/self/ns/{kind}" for kind in kinds)).stdout.data.decode().split()
    assert len(said) == len(kinds)
    assert not set(said) & {os.readlink(f"/proc/self/ns/{kind}") for kind in kinds}
