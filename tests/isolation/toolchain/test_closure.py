"""From argv[0] to what must be shown: by reading alone, and never by what a project's file says."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from firsthand.isolation.toolchain import Closure, Toolchain, ToolchainError, resolve

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs are placed on POSIX systems only")


def program(path: Path, text: str = "\x7fELF binary") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "tools"


def place(name: str, source: Path, **fields: Any) -> Closure:
    settings: dict[str, Any] = {
        "registered": [],
        "toolchains": [],
        "environment": {"PATH": ""},
        "refuse": lambda root: None,
        **fields,
    }
    return resolve([name], source=source, **settings)


def test_a_program_of_the_system_needs_nothing(source: Path) -> None:
    found = place("sh", source)
    assert (found.toolchains, found.links, found.path) == ((), (), ())
    assert found.programs["sh"].path in ("/usr/bin/sh", "/bin/sh")
    assert found.programs["sh"].sha256 == hashlib.sha256(Path("/bin/sh").resolve().read_bytes()).hexdigest()


def test_the_hosts_path_is_searched_and_the_folder_above_bin_shown(source: Path, tools: Path) -> None:
    node = program(tools / "node" / "bin" / "node")
    found = place("node", source, environment={"PATH": str(node.parent)})
    assert found.programs["node"].path == str(node)
    assert found.toolchains == (Toolchain(tools / "node", named=False),)
    assert found.path == (tools / "node" / "bin",)


def test_named_toolchains_come_before_the_hosts_path(source: Path, tools: Path) -> None:
    named = program(tools / "one" / "bin" / "node")
    other = program(tools / "two" / "bin" / "node")
    found = place("node", source, toolchains=[tools / "one"], environment={"PATH": str(other.parent)})
    assert found.programs["node"].path == str(named)
    assert found.toolchains == (Toolchain(tools / "one", named=True),)


@pytest.mark.parametrize("entry", ["bin", ".", "", "PROJECT/bin", "PROJECT/../project/bin", "PROJECT/../alias/bin"])
def test_path_entries_that_the_project_controls_are_passed_over(
    source: Path, entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(source / "bin" / "planted")
    (source.parent / "alias").symlink_to(source)
    monkeypatch.chdir(source)
    with pytest.raises(ToolchainError, match="no executable 'planted'"):
        place(
            "planted", source, registered=["bin/planted"], environment={"PATH": entry.replace("PROJECT", str(source))}
        )


def test_a_program_that_is_nowhere_names_the_field(source: Path) -> None:
    with pytest.raises(ToolchainError) as caught:
        place("no-such-program", source)
    assert caught.value.where == "reviewVerification.toolchains"
    assert caught.value.exit_status == 2


def test_a_link_outside_is_shown_as_a_link(source: Path, tools: Path) -> None:
    program(tools / "node-20" / "bin" / "node")
    (tools / "node").symlink_to("node-20")
    found = place("node", source, environment={"PATH": str(tools / "node" / "bin")})
    assert found.programs["node"].path == str(tools / "node" / "bin" / "node")
    assert found.links == ((tools / "node", "node-20"),)
    assert found.toolchains == (Toolchain(tools / "node-20", named=False),)


def test_links_in_a_circle_are_an_error(source: Path, tools: Path) -> None:
    tools.mkdir()
    (tools / "a").symlink_to("b")
    (tools / "b").symlink_to("a")
    with pytest.raises(ToolchainError):
        place(str(tools / "a"), source)


def test_scripts_bring_their_interpreter(source: Path, tools: Path) -> None:
    program(tools / "python" / "bin" / "python3.12")
    script = program(tools / "app" / "bin" / "pytest", f"#!{tools}/python/bin/python3.12\n")
    found = place("pytest", source, environment={"PATH": str(script.parent)})
    assert {each.root for each in found.toolchains} == {tools / "app", tools / "python"}


def test_long_interpreter_lines_of_pip_are_understood(source: Path, tools: Path) -> None:
    program(tools / "python" / "bin" / "python3")
    script = program(tools / "app" / "bin" / "x", f'#!/bin/sh\n\'\'\'exec\' "{tools}/python/bin/python3" "$0" "$@"\n')
    found = place("x", source, environment={"PATH": str(script.parent)})
    assert {each.root for each in found.toolchains} == {tools / "app", tools / "python"}


def test_env_finds_a_script_s_interpreter_inside_only(source: Path, tools: Path) -> None:
    program(tools / "n" / "bin" / "strange-node")
    npm = program(tools / "n" / "bin" / "npm", "#!/usr/bin/env -S strange-node --x\n")
    assert place("npm", source, environment={"PATH": str(npm.parent)}).toolchains == (
        Toolchain(tools / "n", named=False),
    )
    lonely = program(tools / "m" / "bin" / "npm", "#!/usr/bin/env strange-node\n")
    both = f"{lonely.parent}:{npm.parent}"
    with pytest.raises(ToolchainError, match="no PATH inside"):
        place("npm", source, environment={"PATH": both})


@pytest.fixture
def base(tools: Path) -> Path:
    program(tools / "base" / "bin" / "python3.12")
    return tools / "base"


def make_venv(folder: Path, base: Path) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(base / "bin" / "python3.12")
    (folder / "pyvenv.cfg").write_text(f"home = {base}/bin\ninclude-system-site-packages = false\n")
    return folder


def test_a_virtual_environment_brings_the_installation_it_was_made_from(source: Path, tools: Path, base: Path) -> None:
    venv = make_venv(tools / "venv", base)
    found = place("python", source, environment={"PATH": str(venv / "bin")})
    assert found.programs["python"].path == str(venv / "bin" / "python")
    assert {each.root for each in found.toolchains} == {venv, base}


def test_a_virtual_environment_inside_the_source_opens_nothing_by_itself(source: Path, base: Path) -> None:
    venv = make_venv(source / ".venv", base)
    with pytest.raises(ToolchainError) as caught:
        place(".venv/bin/python", source, toolchains=[venv])
    assert str(base) in caught.value.next_step
    found = place(".venv/bin/python", source, toolchains=[venv, base])
    assert (found.in_source, found.toolchains) == ((venv,), (Toolchain(base, named=True),))
    assert found.programs[".venv/bin/python"].path == str(venv / "bin" / "python")


def test_a_link_inside_the_source_opens_nothing_by_itself(source: Path, base: Path) -> None:
    (source / "python").symlink_to(base / "bin" / "python3.12")
    with pytest.raises(ToolchainError, match="what a file of the project leads to"):
        place("./python", source, registered=["python"])


@pytest.mark.parametrize(
    "head", ["#!{}\n", "#!/usr/bin/env {}\n", "#!/usr/bin/env -S A=1 {} -x\n", "#!/bin/sh\n'''exec' \"{}\" \"$0\"\n"]
)
def test_a_script_of_the_project_opens_nothing_by_itself(source: Path, base: Path, head: str) -> None:
    program(source / "run", head.format(f"{base}/bin/python3.12"))
    with pytest.raises(ToolchainError) as caught:
        place("./run", source, registered=["run"])
    assert str(base) in caught.value.next_step
    found = place("./run", source, registered=["run"], toolchains=[base])
    assert found.programs["./run"].path == str(source / "run")


def test_a_dependency_folder_s_script_opens_nothing_by_itself(source: Path, base: Path) -> None:
    program(source / ".venv" / "bin" / "tool", f"#!{base}/bin/python3.12\n")
    with pytest.raises(ToolchainError, match="what a file of the project leads to"):
        place(".venv/bin/tool", source, toolchains=[source / ".venv"])


def test_what_the_project_leads_to_stays_its_doing_further_on(source: Path, tools: Path) -> None:
    # A link of the project to an environment elsewhere, whose own link then leads into the system.
    venv = tools / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to("/bin/sh")
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (source / "python").symlink_to(venv / "bin" / "python")
    with pytest.raises(ToolchainError) as caught:
        place("./python", source, registered=["python"])
    assert str(venv) in caught.value.next_step


def test_an_environment_of_the_project_must_be_named(source: Path) -> None:
    (source / ".venv" / "bin").mkdir(parents=True)
    (source / ".venv" / "bin" / "python").symlink_to("/bin/sh")
    (source / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    with pytest.raises(ToolchainError) as caught:
        place(".venv/bin/python", source)
    assert str(source / ".venv") in caught.value.next_step


@pytest.mark.parametrize(
    ("interpreter", "reason"),
    [("/usr/bin/no-such-program", "No such file"), ("/usr/bin", "no regular file"), ("/usr/bin/x\0y", "No such file")],
)
def test_an_interpreter_that_is_none_is_named(source: Path, interpreter: str, reason: str) -> None:
    program(source / "run", f"#!{interpreter}\n")
    with pytest.raises(ToolchainError, match=reason) as caught:
        place("./run", source, registered=["run"])
    assert interpreter.partition("\0")[0] in caught.value.message


def test_an_interpreter_that_is_a_pipe_does_not_block(source: Path, tools: Path) -> None:
    tools.mkdir()
    os.mkfifo(tools / "pipe")
    program(source / "run", f"#!{tools}/pipe\n")
    with pytest.raises(ToolchainError, match="no regular file"):
        place("./run", source, registered=["run"], toolchains=[tools])


def test_a_program_of_the_project_must_be_registered(source: Path) -> None:
    program(source / "run", "#!/bin/sh\n")
    with pytest.raises(ToolchainError) as caught:
        place("./run", source)
    assert caught.value.where == "reviewVerification.files"
    assert place("./run", source, registered=["run"]).programs["./run"].path == str(source / "run")


def test_derived_roots_pass_the_same_refusals(source: Path, tools: Path) -> None:
    class RefusedError(Exception):
        pass

    def refuse(root: Path) -> None:
        raise RefusedError(root)

    node = program(tools / "node" / "bin" / "node")
    with pytest.raises(RefusedError, match="node"):
        place("node", source, environment={"PATH": str(node.parent)}, refuse=refuse)


def test_pyenv_is_looked_through(source: Path, tools: Path) -> None:
    pyenv = tools / "pyenv"
    shim = program(pyenv / "shims" / "python3", "#!/usr/bin/env bash\nexec pyenv exec python3\n")
    program(pyenv / "versions" / "3.12.1" / "bin" / "python3")
    program(pyenv / "versions" / "3.11.7" / "bin" / "python3")
    (pyenv / "version").write_text("3.11.7\n3.12.1\n")
    found = place("python3", source, environment={"PATH": str(shim.parent)})
    assert found.programs["python3"].path == str(pyenv / "versions" / "3.11.7" / "bin" / "python3")
    chosen = place("python3", source, environment={"PATH": str(shim.parent), "PYENV_VERSION": "3.12"})
    assert chosen.toolchains == (Toolchain(pyenv / "versions" / "3.12.1", named=False),)


def test_a_version_file_of_the_project_opens_nothing_by_itself(source: Path, tools: Path) -> None:
    pyenv = tools / "pyenv"
    shim = program(pyenv / "shims" / "python3", "#!/usr/bin/env bash\n")
    program(pyenv / "versions" / "3.12.1" / "bin" / "python3")
    (source / ".python-version").write_text("3.12.1\n")
    with pytest.raises(ToolchainError) as caught:
        place("python3", source, environment={"PATH": str(shim.parent)})
    assert str(pyenv / "versions" / "3.12.1") in caught.value.next_step
    (source / ".python-version").write_text("../../../etc\n")
    with pytest.raises(ToolchainError, match="no version"):
        place("python3", source, environment={"PATH": str(shim.parent)})


def test_rustup_is_looked_through(source: Path, tools: Path) -> None:
    program(tools / ".cargo" / "bin" / "rustup")
    (tools / ".cargo" / "bin" / "cargo").symlink_to("rustup")
    real = program(tools / ".rustup" / "toolchains" / "stable-x86_64" / "bin" / "cargo")
    (tools / ".rustup" / "settings.toml").write_text('default_toolchain = "stable-x86_64"\n')
    found = place("cargo", source, environment={"PATH": str(tools / ".cargo" / "bin")})
    assert found.programs["cargo"].path == str(real)
    (source / "rust-toolchain.toml").write_text('[toolchain]\nchannel = "stable-x86_64"\n')
    with pytest.raises(ToolchainError, match="what a file of the project leads to"):
        place("cargo", source, environment={"PATH": str(tools / ".cargo" / "bin")})


def test_stand_ins_of_unknown_managers_are_an_error(source: Path, tools: Path) -> None:
    shim = program(tools / "mise" / "shims" / "node")
    with pytest.raises(ToolchainError, match="version manager that is not known"):
        place("node", source, environment={"PATH": str(shim.parent)})


def test_nothing_is_executed(source: Path, tools: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    script = program(tools / "x" / "bin" / "x", f"#!/bin/sh\ntouch {trace}\n")
    place("x", source, environment={"PATH": str(script.parent)})
    os.system(str(script))  # noqa: S605 # the control: the script does leave its trace when it runs
    assert trace.exists()
    trace.unlink()
    place("x", source, environment={"PATH": str(script.parent)})
    assert not trace.exists()
