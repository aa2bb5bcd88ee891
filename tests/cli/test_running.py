"""From arguments to an exit status: errors, usage, signals, readers that go away, faults of our own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer

from e2e.program import Answer, Program, carrying
from e2e.project import Project
from firsthand.cli.running import run_program
from firsthand.errors import EXIT_STATUS_BY_CODE, EXIT_UNKNOWN, EXIT_USAGE, FirsthandError

RAISE = """
import sys
import typer
from firsthand.cli.running import run_program
from firsthand.errors import FirsthandError

app = typer.Typer()

@app.command()
def raising(json: bool = typer.Option(False, "--json")) -> None:
    {statement}

run_program(app)
"""


def raising(statement: str, *arguments: str, cwd: Path) -> Answer:
    program = Program(cwd / "state", (sys.executable, "-c", RAISE.format(statement=statement)))
    return program(*arguments, cwd=cwd)


CONTRACT = {
    "review_verification_definition": 2,
    "review_verification_definition_changed": 2,
    "review_verification_provider": 3,
    "tool_preflight_missing": 3,
    "review_verification_isolation_unavailable": 3,
    "review_verification_package_binding": 3,
    "review_verification_source_drift": 1,
    "review_verification_copy_drift": 1,
    "review_verification_baseline_failed": 1,
    "review_verification_evidence": 1,
    "review_verification_cleanup_unknown": 4,
    "isolation-breach": 1,
    "provider-config-unreadable": 3,
    "no-auth": 3,
    "evidence_invalid": 1,
    "evidence_stale": 1,
    "round_unknown": 4,
}


def test_the_contracts_codes_have_the_contracts_exit_statuses() -> None:
    assert CONTRACT.items() <= EXIT_STATUS_BY_CODE.items()
    assert set(EXIT_STATUS_BY_CODE.values()) <= {1, 2, 3, 4}


def test_every_code_ends_the_process_with_its_exit_status_and_all_four_parts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        for code, status in EXIT_STATUS_BY_CODE.items():

            def fail(code: str = code) -> None:
                raise FirsthandError("it failed", where="at the place", next_step="do that", code=code)

            app = typer.Typer()
            app.command()(fail)
            monkeypatch.setattr(sys, "argv", ["firsthand"])
            with pytest.raises(SystemExit) as ended:
                run_program(app)
            assert ended.value.code == status
            said = capsys.readouterr()
            assert said.out == ""
            for part in ("error: it failed", code, "where: at the place", "next:  do that"):
                assert part in said.err
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def test_a_refusal_as_json_is_one_object_on_standard_output(tmp_path: Path) -> None:
    statement = "raise FirsthandError('what\\x1b[31m', where='where', next_step='next', code='no-auth')"
    answer = raising(statement, "--json", cwd=tmp_path)
    assert answer.status == 3
    assert answer.err == ""
    assert answer.json == {
        "status": "refused",
        "code": "no-auth",
        "message": "what\x1b[31m",
        "next": "next",
        "where": "where",
    }
    assert "\x1b" not in answer.out


def test_a_foreign_message_can_not_act_on_the_terminal_or_the_log(tmp_path: Path) -> None:
    statement = "raise FirsthandError('bad\\n::error::x\\x1b[2J##[add-path]y', where='\\u202e', next_step='n')"
    answer = raising(statement, cwd=tmp_path)
    assert "\x1b" not in answer.err
    assert "\u202e" not in answer.err
    assert "##[" not in answer.err
    assert not any(line.lstrip().startswith("::") for line in answer.err.splitlines())


def test_a_fault_of_our_own_is_unknown_and_never_negative(tmp_path: Path) -> None:
    plain = raising("raise KeyError('oops')", cwd=tmp_path)
    assert plain.status == EXIT_UNKNOWN
    assert "KeyError: 'oops'" in plain.err
    assert "report it" in plain.err
    assert plain.out == ""
    told = raising("raise PermissionError(13, 'no')", "--json", cwd=tmp_path)
    assert told.status == EXIT_UNKNOWN
    assert told.json["status"] == "unknown"
    assert set(told.json) == {"status", "code", "message", "next"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--nope"],
        ["bogus"],
        ["check", "--nope"],
        ["check", "surplus"],
        ["verify"],
        ["conformance"],
        ["keys", "bogus"],
        ["mutate", "--jobs", "0"],
        ["mutate", "--jobs", "many"],
        ["mutate"],
        ["mutate", "--check", "a", "--path", "b"],
        ["mutate", "--check", "a", "--path", "b", "--old", "x"],
        ["mutate", "--check", "a", "--path", "b", "--old", "x", "--old-file", "f", "--new", "y"],
        ["mutate", "--plan", "absent.json"],
        ["mutate", "--plan", "p", "--old", "x"],
        ["init", "absent-folder"],
        ["verify", "absent.json"],
    ],
)
def test_wrong_usage_is_a_refusal_in_json(arguments: list[str], cold: Program, tmp_path: Path) -> None:
    told = cold(*arguments, "--json", cwd=tmp_path)
    assert told.status == (1 if arguments == ["verify", "absent.json"] else EXIT_USAGE)
    assert told.err == ""
    assert told.json["status"] == "refused"
    assert {"code", "message", "next"} <= set(told.json)


@pytest.mark.parametrize("arguments", [["--nope"], ["check", "surplus"], ["mutate"], ["init", "absent-folder"]])
def test_wrong_usage_is_told_to_people_on_standard_error(arguments: list[str], cold: Program, tmp_path: Path) -> None:
    answer = cold(*arguments, cwd=tmp_path)
    assert answer.status == EXIT_USAGE
    assert answer.out == ""
    assert answer.err != ""
    assert "Traceback" not in answer.err


def test_without_arguments_it_shows_its_commands(cold: Program, tmp_path: Path) -> None:
    answer = cold(cwd=tmp_path)
    for name in ("init", "doctor", "check", "mutate", "verify", "residues", "demo", "keys"):
        assert name in answer.out + answer.err


def test_help_imports_none_of_the_heavy_libraries(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from firsthand.cli.app import main\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert end.code == 0, end.code\n"
        "heavy = {'pydantic', 'mcp', 'cryptography', 'jinja2', 'rfc8785', 'stevedore', 'sqlite3'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    for arguments in (["--help"], ["--version"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout
        assert done.stderr == "[]\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("command", ["check", "mutate"])
def test_a_signal_ends_everything_and_leaves_nothing(
    number: signal.Signals, command: str, program: Program, project: Project, tmp_path: Path
) -> None:
    mark = f"FIRSTHAND_TEST_{os.getpid()}_{number}_{command}"
    project.shell(("sleeps", "sleep 60 & sleep 60"), mutationPaths=["note.sh"], files=["note.txt", "note.sh"])
    project.write("note.sh", "one two\n")
    arguments = [command]
    if command == "mutate":
        arguments += ["--check", "sleeps", "--path", "note.sh", "--old", "one", "--new", "two"]
    running = program.start(*arguments, cwd=project.root, MARK=mark)
    begun = time.monotonic()
    while not (sleeping := _sleeping(running.pid)):
        assert running.poll() is None
        assert time.monotonic() - begun < 30
    running.send_signal(number)
    out, err = running.communicate(timeout=10)
    assert running.returncode == EXIT_UNKNOWN, err
    assert b"interrupted" in err
    assert b"Traceback" not in err
    assert out == b""
    assert program.sessions() == []
    assert carrying(mark) == []
    assert not [pid for pid in sleeping if Path(f"/proc/{pid}").exists()]
    evidence = program.state / "evidence"
    assert not evidence.exists() or os.listdir(evidence) == []
    assert program("residues", "--json", cwd=project.root).json == {"residues": []}


def _sleeping(ancestor: int) -> list[int]:
    """The sleeping grandchildren of a process, however deep."""
    parents: dict[int, int] = {}
    sleeping = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
            if (entry / "cmdline").read_bytes() == b"sleep\x0060\x00":
                sleeping.append(int(entry.name))
        except OSError:
            continue

    def below(pid: int) -> bool:
        while pid in parents:
            pid = parents[pid]
            if pid == ancestor:
                return True
        return False

    return [pid for pid in sleeping if below(pid)]


def test_a_reader_that_goes_away_is_no_negative_answer(cold: Program, tmp_path: Path) -> None:
    for arguments in (["schema"], ["plugins"], ["plugins", "--json"], ["--help"], ["residues"]):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [*cold.command, *arguments],
            cwd=tmp_path,
            env={**os.environ, "FIRSTHAND_STATE": str(cold.state)},
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
        )
        os.close(writer)
        assert done.returncode == EXIT_UNKNOWN, arguments
        assert b"Traceback" not in done.stderr
        assert b"BrokenPipe" not in done.stderr
