"""Where the CLI is found, what is recorded of it, and what is refused by name."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from firsthand.residues import Session
from firsthand.review.interface import Host, Incapable, ReviewError
from firsthand_claude.managed import managed_folders, managed_refusal
from firsthand_claude.program import Programs, bundled_program, find_program
from firsthand_claude.provider import ClaudeProvider
from providers.claude.driving import Driver
from providers.claude.standin import FLAGS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script with a shebang")

Make: TypeAlias = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A program that says this version and this help."""

    def write(version: str = "2.1.332 (Claude Code)", shown: str = FLAGS, name: str = "claude") -> Path:
        folder = tmp_path / f"bin-{len(os.listdir(tmp_path))}"
        folder.mkdir()
        path = folder / name
        path.write_text(f'#!/bin/sh\ncase "$1" in --version) echo "{version}";; --help) echo "{shown}";; esac\n')
        path.chmod(0o755)
        return path

    return write


def host(program: Path | None = None, **environment: str) -> Host:
    return Host(environment=environment, home=None, program=program)


def test_a_path_that_was_given_comes_first(make: Make) -> None:
    given, on_path = make(), make()
    assert find_program(host(given, PATH=str(on_path.parent))) == given


def test_then_path_then_the_bundle(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path = make()
    assert find_program(host(PATH=str(on_path.parent))) == on_path
    monkeypatch.setattr("firsthand_claude.program.bundled_program", lambda: on_path)
    assert find_program(host(PATH="/nonexistent")) == on_path
    monkeypatch.setattr("firsthand_claude.program.bundled_program", lambda: None)
    missing = find_program(host(PATH=""))
    assert isinstance(missing, Incapable)
    assert "not installed" in missing.reason


def test_the_bundle_is_found_without_importing_it(cli: Path) -> None:
    assert bundled_program() == cli
    assert "claude_agent_sdk" not in sys.modules


def test_a_path_without_a_program_is_refused(tmp_path: Path) -> None:
    for bad in (tmp_path, tmp_path / "absent"):
        found = find_program(host(bad))
        assert isinstance(found, Incapable)
        assert str(bad) in found.reason


def test_a_link_is_followed_to_what_runs(make: Make, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(make())
    assert find_program(host(link)) == link.resolve()


def test_version_and_digest_are_recorded(make: Make) -> None:
    program = make()
    capability = ClaudeProvider(managed=()).capability(host(program))
    assert not isinstance(capability, Incapable)
    assert capability.program.version == "2.1.332"
    assert capability.program.sha256 == hashlib.sha256(program.read_bytes()).hexdigest()
    assert capability.verification


@pytest.mark.parametrize("version", ["2.1.197 (Claude Code)", "2.1.1", "1.9.999"])
def test_a_version_that_is_too_old_is_refused_with_its_flags(make: Make, version: str) -> None:
    found = ClaudeProvider(managed=()).capability(host(make(version)))
    assert isinstance(found, Incapable)
    assert found.code == "review_verification_provider"
    assert "--restricted and --permission-prompts" in found.reason
    assert version.split(maxsplit=1)[0] in found.reason


@pytest.mark.parametrize("version", ["", "hello", "2.1", "v2.1.332", "2.1.332x", "2.1.9999999"])
def test_what_tells_no_version_is_no_cli(make: Make, version: str) -> None:
    found = ClaudeProvider(managed=()).capability(host(make(version)))
    assert isinstance(found, Incapable)


@pytest.mark.parametrize("flag", FLAGS.split())
def test_a_flag_that_is_lacking_is_named(make: Make, session: Session, tmp_path: Path, flag: str) -> None:
    program = make(shown=" ".join(word for word in FLAGS.split() if word != flag))
    driver = Driver(ClaudeProvider(managed=()), session, tmp_path, program)
    with pytest.raises(ReviewError) as caught:
        driver.preflight(driver.server())
    assert caught.value.message == f"the Claude CLI 2.1.332 at {program} lacks {flag}"
    assert caught.value.code == "review_verification_provider"


def test_a_longer_flag_does_not_stand_in_for_a_shorter(make: Make, session: Session, tmp_path: Path) -> None:
    program = make(shown=FLAGS.replace("--restricted", "--restricted-more --un--restricted"))
    driver = Driver(ClaudeProvider(managed=()), session, tmp_path, program)
    with pytest.raises(ReviewError) as caught:
        driver.preflight(driver.server())
    assert caught.value.message.endswith(" lacks --restricted")


def test_the_real_cli_lists_every_flag(driver: Driver) -> None:
    driver.preflight(None)


def test_a_program_is_digested_once_until_it_changes(make: Make) -> None:
    program, asked = make(), []
    programs = Programs()

    def ask(path: Path, option: str) -> str:
        asked.append(option)
        return "2.1.332"

    first = programs.identity(host(program), ask)
    assert programs.identity(host(program), ask) == first
    assert asked == ["--version"]
    program.write_text("#!/bin/sh\n# another\n")
    second = programs.identity(host(program), ask)
    assert second != first
    assert asked == ["--version"] * 2


def test_a_program_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firsthand_claude.asking._LIMIT_S", 0.5)
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\nsleep 600\n")
    program.chmod(0o755)
    found = ClaudeProvider(managed=()).capability(host(program))
    assert isinstance(found, Incapable)
    assert "took longer" in found.reason


def test_a_program_that_floods_its_version_is_no_cli(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\nexec yes\n")
    program.chmod(0o755)
    found = ClaudeProvider(managed=()).capability(host(program))
    assert isinstance(found, Incapable)


def test_the_programs_environment_is_not_the_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "REAL-KEY")
    program = tmp_path / "claude"
    program.write_text(f'#!/bin/sh\nenv > {tmp_path}/seen\necho "2.1.332"\n')
    program.chmod(0o755)
    ClaudeProvider(managed=()).capability(host(program))
    assert "REAL-KEY" not in (tmp_path / "seen").read_text()


def test_managed_settings(tmp_path: Path) -> None:
    folder = tmp_path / "managed"
    assert managed_refusal([folder]) is None
    folder.mkdir()
    assert managed_refusal([folder]) is None
    (folder / "managed-mcp.json").touch()
    refusal = managed_refusal([tmp_path / "absent", folder])
    assert refusal is not None
    assert "managed-mcp.json" in refusal.reason
    assert managed_refusal([folder / "managed-mcp.json"]) is not None
    assert all(managed_folders(platform) for platform in ("linux", "darwin", "win32"))
