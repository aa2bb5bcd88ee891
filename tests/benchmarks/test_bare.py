"""The bare program that `--help` is compared with must offer what the real one does, or the ratio means nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from benchmarks.projects.bare import bare_program

from firsthand.cli.app import app


def shown(source: str, folder: Path, *arguments: str) -> str:
    script = folder / "program.py"
    script.write_text(source, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, script, *arguments], capture_output=True, text=True, check=True, env={"COLUMNS": "160"}
    )
    return ended.stdout


def options(text: str) -> list[str]:
    return sorted(set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text)))


REAL = "from firsthand.cli.app import app\napp()\n"


@pytest.mark.parametrize("command", [(), ("mutate",), ("verify",), ("keys",), ("keys", "new")])
def test_the_bare_program_shows_the_same_commands_options_and_texts(tmp_path: Path, command: tuple[str, ...]) -> None:
    bare = shown(bare_program(app) + "\napp()\n", tmp_path, *command, "--help")
    real = shown(REAL, tmp_path, *command, "--help")
    assert options(bare) == options(real)
    assert len(bare.splitlines()) == len(real.splitlines())


def test_it_has_nothing_behind_its_commands() -> None:
    source = bare_program(app)
    assert "firsthand.cli" not in source
    assert "import" not in source.split("app = typer.Typer", 1)[1]


def test_a_program_without_options_is_mirrored_too(tmp_path: Path) -> None:
    small = typer.Typer(help="Small.", add_completion=False)

    @small.command()
    def one() -> None:
        """Does one thing."""

    @small.command("second-name")
    def two(number: int) -> None:
        """Does another."""

    # Plain parameters do not occur in this project, and are not guessed at.
    with pytest.raises(ValueError, match="number is not declared"):
        bare_program(small)
    del small.registered_commands[1]
    assert "Does one thing." in shown(bare_program(small) + "\napp()\n", tmp_path, "--help")
