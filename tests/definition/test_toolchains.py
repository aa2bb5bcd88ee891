from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from firsthand.definition import DefinitionError, home_folders, parse_definition, refuse_root


class Place:
    """A source, a state directory, a home and a toolchain beside each other."""

    def __init__(self, base: Path) -> None:
        self.base = base.resolve()
        self.source = self.base / "projects" / "source"
        self.state = self.base / "state" / "firsthand"
        self.home = self.base / "people" / "me"
        self.tool = self.base / "tools" / "node-20"
        for folder in (self.source, self.state, self.home, self.tool / "bin"):
            folder.mkdir(parents=True)

    def refuse(self, path: Path | str) -> None:
        begun = time.monotonic()
        try:
            refuse_root(Path(path), source=self.source, state_dir=self.state, homes=[self.home], field="toolchains[0]")
        finally:
            assert time.monotonic() - begun < 1

    def reason(self, path: Path | str) -> str:
        with pytest.raises(DefinitionError) as caught:
            self.refuse(path)
        assert caught.value.field == "toolchains[0]"
        return caught.value.reason


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_toolchain_outside_is_accepted(place: Place) -> None:
    place.refuse(place.tool)


def test_what_is_not_there_or_no_folder_is_refused(place: Place) -> None:
    (place.tool / "file").write_bytes(b"")
    (place.base / "loop").symlink_to("loop")
    assert place.reason("relative/tool") == "toolchain-not-absolute"
    assert place.reason(place.tool / ".." / "node-20") == "toolchain-not-absolute"
    assert place.reason(place.tool / "absent") == "toolchain-missing"
    assert place.reason(place.base / "loop") == "toolchain-missing"
    assert place.reason(place.tool / "file") == "toolchain-not-a-folder"


@pytest.mark.parametrize("path", ["/", "/home", "/opt", "/tmp", "/var", "/root", "/mnt", "/srv"])
def test_folders_that_hold_everything_are_refused(place: Place, path: str) -> None:
    if not os.path.isdir(path):
        pytest.skip(f"no {path} here")
    assert place.reason(path) in ("toolchain-too-wide", "toolchain-contains-home")


@pytest.mark.parametrize("path", ["/etc", "/etc/ssl", "/proc", "/proc/self", "/sys", "/dev", "/run"])
def test_the_systems_own_folders_are_refused_with_all_in_them(place: Place, path: str) -> None:
    if not os.path.isdir(path):
        pytest.skip(f"no {path} here")
    assert place.reason(path) == "toolchain-system"


def test_a_root_around_source_state_or_home_is_refused(place: Place) -> None:
    assert place.reason(place.source) == "toolchain-contains-source"
    assert place.reason(place.source.parent) == "toolchain-contains-source"
    assert place.reason(place.state) == "toolchain-contains-state"
    assert place.reason(place.state.parent) == "toolchain-contains-state"
    (place.state / "runs").mkdir()
    assert place.reason(place.state / "runs") == "toolchain-contains-state"
    assert place.reason(place.home) == "toolchain-contains-home"
    assert place.reason(place.home.parent) == "toolchain-contains-home"
    assert place.reason(place.base) in ("toolchain-contains-home", "toolchain-contains-source")


def test_a_state_directory_that_is_not_there_yet_counts(place: Place) -> None:
    place.state.rmdir()
    assert place.reason(place.state.parent) == "toolchain-contains-state"


def test_whatever_lies_directly_among_the_homes_is_one(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    other = place.base / "homes" / "someone-else"
    (other / "tool").mkdir(parents=True)
    place.refuse(other)
    monkeypatch.setattr("firsthand.definition.toolchains.HOME_PARENTS", (str(other.parent),))
    assert place.reason(other) == "toolchain-contains-home"
    place.refuse(other / "tool")


def test_a_toolchain_in_a_home_is_accepted(place: Place) -> None:
    (place.home / ".pyenv" / "versions" / "3.11").mkdir(parents=True)
    place.refuse(place.home / ".pyenv" / "versions" / "3.11")


def test_links_hide_nothing(place: Place) -> None:
    links = place.base / "links"
    links.mkdir()
    for name, target in [
        ("home", place.home),
        ("source", place.source.parent),
        ("state", place.state),
        ("etc", Path("/etc")),
        ("all", Path("/")),
        ("tool", place.tool),
    ]:
        (links / name).symlink_to(target)
    assert place.reason(links / "home") == "toolchain-contains-home"
    assert place.reason(links / "source") == "toolchain-contains-source"
    assert place.reason(links / "state") == "toolchain-contains-state"
    assert place.reason(links / "etc") == "toolchain-system"
    assert place.reason(links / "all") == "toolchain-too-wide"
    place.refuse(links / "tool")


def test_a_bind_mount_hides_nothing(place: Place) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    mirror = place.base / "mirror"
    mirror.mkdir()
    mounted = subprocess.run(["/bin/mount", "--bind", place.home.parent, mirror], check=False, capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        assert place.reason(mirror) == "toolchain-contains-home"
    finally:
        subprocess.run(["/bin/umount", mirror], check=True)


@pytest.mark.parametrize("name", [".venv", "venv", "node_modules", "vendor"])
def test_a_dependency_folder_in_the_source_is_accepted(place: Place, name: str) -> None:
    for folder in (place.source / name, place.source / "packages" / "a" / name):
        folder.mkdir(parents=True)
        place.refuse(folder)


def test_other_folders_in_the_source_are_refused(place: Place) -> None:
    for name in ("src", "build", "node_modules/a"):
        (place.source / name).mkdir(parents=True)
        assert place.reason(place.source / name) == "toolchain-inside-source"


def test_a_link_that_the_project_controls_leads_nowhere(place: Place) -> None:
    (place.source / ".venv").symlink_to(place.tool)
    assert place.reason(place.source / ".venv") == "toolchain-link"
    (place.source / "packages").symlink_to(place.base / "elsewhere")
    (place.base / "elsewhere" / "node_modules").mkdir(parents=True)
    assert place.reason(place.source / "packages" / "node_modules") == "toolchain-link"
    (place.source / "vendor").mkdir()
    (place.source / "node_modules").symlink_to("vendor")
    assert place.reason(place.source / "node_modules") == "toolchain-link"
    (place.base / "in").symlink_to(place.source / "vendor")
    assert place.reason(place.base / "in") == "toolchain-link"


def bind_socket(folder: Path) -> None:
    here = Path.cwd()
    os.chdir(folder)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
    os.chdir(here)


def test_sockets_pipes_and_credentials_inside_are_refused(place: Place) -> None:
    tools = {name: place.base / "tools" / name for name in ("socket", "pipe", "folder", "nested", "file", "deep-file")}
    for tool in tools.values():
        (tool / "a" / "b").mkdir(parents=True)
    bind_socket(tools["socket"] / "a" / "b")
    os.mkfifo(tools["pipe"] / "a" / "b" / "p")
    (tools["folder"] / "a" / ".ssh").mkdir()
    (tools["nested"] / "a" / ".config" / "gcloud").mkdir(parents=True)
    (tools["file"] / ".netrc").write_bytes(b"")
    (tools["deep-file"] / "a" / "b" / "cacert.pem").write_bytes(b"")
    assert place.reason(tools["socket"]) == "toolchain-holds-socket"
    assert place.reason(tools["pipe"]) == "toolchain-holds-special-file"
    assert place.reason(tools["folder"]) == "toolchain-holds-credentials"
    assert place.reason(tools["nested"]) == "toolchain-holds-credentials"
    assert place.reason(tools["file"]) == "toolchain-holds-credentials"
    place.refuse(tools["deep-file"])


def test_a_root_inside_a_credential_folder_is_refused(place: Place) -> None:
    (place.home / ".ssh" / "bin").mkdir(parents=True)
    assert place.reason(place.home / ".ssh") == "toolchain-holds-credentials"
    assert place.reason(place.home / ".ssh" / "bin") == "toolchain-holds-credentials"


def test_links_inside_are_not_followed(place: Place) -> None:
    bind_socket(place.base)
    (place.tool / "out").symlink_to(place.base)
    (place.tool / "dangling").symlink_to("nowhere")
    place.refuse(place.tool)


def test_a_root_with_too_many_entries_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firsthand.definition.toolchains.ENTRIES_LIMIT", 10)
    for number in range(11):
        (place.tool / f"{number}").mkdir()
    assert place.reason(place.tool) == "toolchain-too-large"


def test_a_root_that_cannot_be_looked_through_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = place.tool
    fd = os.open(deep, os.O_RDONLY)
    for _ in range(40):
        os.mkdir("n" * 200, dir_fd=fd)
        below = os.open("n" * 200, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    assert place.reason(place.tool) == "toolchain-unreadable"


def test_a_refusal_names_the_field_of_the_definition(place: Place, sound: dict[str, Any]) -> None:
    def refused(toolchains: list[str]) -> tuple[str, str]:
        sound["reviewVerification"]["toolchains"] = toolchains
        with pytest.raises(DefinitionError) as caught:
            parse_definition(json.dumps(sound).encode(), place.source, state_dir=place.state, homes=[place.home])
        return caught.value.field, caught.value.reason

    first, second = "reviewVerification.toolchains[0]", "reviewVerification.toolchains[1]"
    assert refused([str(place.tool), str(place.home)]) == (second, "toolchain-contains-home")
    assert refused([str(place.tool), str(place.tool)]) == (second, "duplicate")
    assert refused(["tools/node"]) == (first, "toolchain-not-absolute")
    assert refused(["~/.pyenv"]) == (first, "toolchain-not-absolute")
    assert refused([f"{place.tool}/"]) == (first, "empty-segment")
    assert refused([f"{place.tool}/../x"]) == (first, "parent-segment")
    assert refused([f"{place.tool}/./x"]) == (first, "dot-segment")
    assert refused([f"{place.tool}\0"]) == (first, "nul")
    assert refused(["/"]) == (first, "toolchain-too-wide")
    assert refused([str(place.source)]) == (first, "toolchain-contains-source")
    assert refused([str(place.state)]) == (first, "toolchain-contains-state")


def test_a_machine_that_executes_nothing_need_not_have_them(place: Place, sound: dict[str, Any]) -> None:
    def parse(toolchain: str) -> None:
        sound["reviewVerification"]["toolchains"] = [toolchain]
        parse_definition(json.dumps(sound).encode(), place.source, homes=[], executes=False)

    parse("/nowhere/at/all")
    for toolchain in ("relative", "/a/../b"):
        with pytest.raises(DefinitionError):
            parse(toolchain)


def test_homes_come_from_the_environment_and_the_user_database(tmp_path: Path) -> None:
    homes = home_folders({"HOME": str(tmp_path)})
    assert homes[0] == tmp_path
    assert all(home.is_absolute() for home in homes)
    assert tmp_path not in home_folders({"HOME": "relative"})
    assert tmp_path not in home_folders({})
