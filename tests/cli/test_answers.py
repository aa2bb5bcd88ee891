"""The shapes of the contract's JSON, what stands on which stream, and how answers look in a pipe and on a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from e2e.fixtures import warm_state
from e2e.program import Answer, Program
from e2e.project import PYTHON, Project, cart
from firsthand.isolation.battery.catalogue import PROBES

ESCAPE = "\x1b"
DIGEST = re.compile(r"[0-9a-f]{64}")
CHANGE = ["--check", "total", "--path", "cart.py", "--old", "return sum(prices)", "--new"]


@dataclass(frozen=True)
class Stage:
    """One project that is checked and mutated once, with everything that was said."""

    program: Program
    project: Project
    check: Answer
    mutate: Answer


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    folder = tmp_path_factory.mktemp("stage")
    shutil.copytree(warm_state(tmp_path_factory), folder / "state")
    program = Program(folder / "state")
    project = cart(folder / "project")
    check = program("check", "--json", cwd=project.root)
    mutate = program("mutate", *CHANGE, "return sum(prices) + 1", "--json", cwd=project.root)
    return Stage(program, project, check, mutate)


def test_check_answers_in_the_contracts_shape(stage: Stage) -> None:
    assert stage.check.status == 0
    assert stage.check.err == ""
    answer = stage.check.json
    assert answer["status"] == "passed"
    assert "code" not in answer
    assert DIGEST.fullmatch(answer["sha256"])
    assert Path(answer["evidence"]).is_relative_to(stage.program.state / "evidence")
    (check,) = answer["checks"]
    assert check["id"] == "total"
    assert check["status"] == "passed"
    assert check["outcome"] == {"kind": "exited", "exitCode": 0}
    assert check["cleanup"] == "complete"
    assert check["tests"] == {"executed": 1, "failed": 0, "skipped": 0, "source": "summary"}


def test_mutate_answers_in_the_contracts_shape(stage: Stage) -> None:
    assert stage.mutate.status == 0
    answer = stage.mutate.json
    assert answer["status"] == "passed"
    (mutation,) = answer["mutations"]
    assert {key: mutation[key] for key in ("check", "path", "verdict", "cause")} == {
        "check": "total",
        "path": "cart.py",
        "verdict": "detected",
        "cause": "named-test-failed",
    }
    assert len(mutation["runs"]) == 3
    assert answer["counts"]["detected"] == 1
    assert sum(answer["counts"].values()) == 1
    verdicts = {"detected", "survived", "timeout", "crash", "not-applied", "not-exercised", "inconclusive"}
    assert set(answer["counts"]) == verdicts


def test_verify_answers_in_the_contracts_shape(stage: Stage, tmp_path: Path) -> None:
    evidence = stage.check.json["evidence"]
    good = stage.program("verify", evidence, "--root", str(stage.project.root), "--json", cwd=tmp_path)
    assert good.status == 0
    assert {key: good.json[key] for key in ("valid", "stale", "signed", "problems")} == {
        "valid": True,
        "stale": False,
        "signed": False,
        "problems": [],
    }
    bad = tmp_path / "bad.json"
    bad.write_bytes(Path(evidence).read_bytes().replace(b'"passed"', b'"failed"', 1))
    answer = stage.program("verify", bad, "--json", cwd=tmp_path)
    assert answer.status == 1
    assert answer.json["valid"] is False
    (problem,) = answer.json["problems"]
    assert set(problem) == {"code", "where", "message"}
    assert problem["code"] == "evidence_invalid"


def test_the_project_changed_makes_evidence_stale(stage: Stage, tmp_path: Path) -> None:
    elsewhere = tmp_path / "project"
    shutil.copytree(stage.project.root, elsewhere)
    (elsewhere / "cart.py").write_text("changed\n")
    evidence = stage.check.json["evidence"]
    answer = stage.program("verify", evidence, "--root", elsewhere, "--json", cwd=tmp_path)
    assert answer.status == 1
    assert (answer.json["valid"], answer.json["stale"]) == (True, True)
    assert {problem["code"] for problem in answer.json["problems"]} == {"evidence_stale"}


def test_standard_output_carries_only_the_answer(stage: Stage, tmp_path: Path) -> None:
    answer = stage.program("check", cwd=stage.project.root)
    assert answer.status == 0
    first, *rest = answer.out.splitlines()
    assert first.split() == ["CHECK", "STATUS", "OUTCOME", "TESTS", "TIME", "CAUSE"]
    assert rest[0].startswith("total")
    assert "every check is green" in rest
    assert "check total: passed" in answer.err
    assert ESCAPE not in answer.out + answer.err


def test_the_output_of_a_failed_check_goes_to_standard_error_harmless(program: Program, project: Project) -> None:
    said = r"printf '\033[31mred\n::error::x\n##[add-path]y\n\342\200\256\n'; exit 3"
    project.shell(("red", said))
    answer = program("check", cwd=project.root)
    assert answer.status == 1
    assert "red" in answer.out
    assert "exit 3" in answer.out
    assert "\\x1b[31mred" in answer.err
    assert "\\u202e" in answer.err
    for text in (answer.out, answer.err):
        assert ESCAPE not in text
        assert "##[" not in text
        assert not any(line.lstrip().startswith("::") for line in text.splitlines())


def test_no_row_is_folded_in_a_pipe_so_no_foreign_text_begins_a_line(stage: Stage) -> None:
    # Folded at some width, the end of this text would begin a line of its own: a command, to a log's reader.
    new = "\n".join(["return sum(prices)  # " + "x" * width + " ::error::x" for width in (1, 60, 170, 180, 190)])
    plan = stage.project.write(
        "plan.json", f'[{{"check": "total", "path": "cart.py", "old": "absent {"y" * 390}::error::", "new": "z"}}]'
    )
    for arguments in ([*CHANGE, new], ["--plan", str(plan)]):
        answer = stage.program("mutate", *arguments, cwd=stage.project.root)
        assert answer.status in (0, 1, 2, 4)
        assert "::error::" not in "\n".join(line.lstrip()[:9] for line in answer.out.splitlines())


def test_refusals_name_what_to_do(stage: Stage, tmp_path: Path) -> None:
    answer = stage.program("check", "--config", "absent.json", "--json", cwd=tmp_path)
    assert answer.status == 2
    assert answer.json["status"] == "refused"
    assert answer.json["code"] == "review_verification_definition"
    assert "init" in answer.json["next"]


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        ([*CHANGE, "return sum(prices)"], 2, "mutation_not_applied"),
        (["--check", "total", "--path", "cart.py", "--old", "absent", "--new", "x"], 2, "mutation_not_applied"),
        (["--check", "absent", "--path", "cart.py", "--old", "sum", "--new", "x"], 2, "mutation_not_applied"),
        (["--check", "total", "--path", "test_cart.py", "--old", "cart", "--new", "x"], 2, "mutation_not_applied"),
        ([*CHANGE, "return sum(prices) "], 1, "mutation_survived"),
        ([*CHANGE, "return sum(prices"], 4, "mutation_inconclusive"),
    ],
)
def test_mutations_that_prove_nothing_have_their_exit_status(
    arguments: list[str], status: int, code: str, stage: Stage
) -> None:
    answer = stage.program("mutate", *arguments, "--json", cwd=stage.project.root)
    assert (answer.status, answer.json["code"]) == (status, code)


@pytest.mark.parametrize("option", ["--check", "--path", "--old", "--new"])
def test_a_mutation_that_is_not_utf_8_is_wrong_usage(option: str, stage: Stage) -> None:
    given = {"--check": "total", "--path": "cart.py", "--old": "sum", "--new": "max", option: "\udcff"}
    arguments = [word for pair in given.items() for word in pair]
    answer = stage.program("mutate", *arguments, "--json", cwd=stage.project.root)
    assert (answer.status, answer.json["code"]) == (2, "usage")
    assert option in answer.json["message"]


def test_a_reader_of_another_encoding_gets_escapes_and_no_fault(stage: Stage) -> None:
    for encoding in ("ascii", "latin-1"):
        answer = stage.program("mutate", *CHANGE, "max(prices) # é", cwd=stage.project.root, PYTHONIOENCODING=encoding)
        assert answer.status == 0, answer.err
        assert "\\u2192" in answer.out


def test_doctor_answers_in_the_contracts_shape(program: Program, tmp_path: Path) -> None:
    answer = program("doctor", "--json", cwd=tmp_path)
    assert answer.status == 0, answer.err
    told: dict[str, Any] = answer.json
    assert {"platform", "selected", "backends", "providers", "auth", "residues"} <= set(told)
    assert {"name", "distribution", "version", "level"} <= set(told["selected"])
    assert told["selected"]["level"] == "os-sandbox"
    by_name = {backend["name"]: backend for backend in told["backends"]}
    chosen = by_name[told["selected"]["name"]]
    assert chosen["available"] is True
    assert len(chosen["probes"]) >= 24
    assert {probe["result"] for probe in chosen["probes"] if probe["required"]} == {"passed"}
    assert all({"id", "result", "observed"} <= set(probe) for probe in chosen["probes"])
    assert by_name["unavailable"]["available"] is False
    assert by_name["unavailable"]["reason"]


def on_a_terminal(program: Program, *arguments: str, cwd: Path, **added: str) -> str:
    """What the program writes to a terminal."""
    leader, follower = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "CI")}
    with subprocess.Popen(
        [*program.command, *arguments],
        cwd=cwd,
        env={**environment, "TERM": "xterm-256color", "COLUMNS": "200", "FIRSTHAND_STATE": str(program.state), **added},
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
    ):
        os.close(follower)
        said = b""
        # A terminal whose last writer left answers with an error, not with an end.
        with contextlib.suppress(OSError):
            while chunk := os.read(leader, 65536):
                said += chunk
        os.close(leader)
    return said.decode()


COLOUR = re.compile(r"\x1b\[[0-9;]*(3[0-7]|9[0-7]|38;)[0-9;]*m")


def test_colour_on_a_terminal_unless_no_color_says_otherwise(cold: Program, tmp_path: Path) -> None:
    assert COLOUR.search(on_a_terminal(cold, "plugins", cwd=tmp_path))
    assert not COLOUR.search(on_a_terminal(cold, "plugins", cwd=tmp_path, NO_COLOR="1"))
    assert ESCAPE not in cold("plugins", cwd=tmp_path).out


def test_schema_is_json_alone_and_knows_a_written_definition(cold: Program, tmp_path: Path) -> None:
    answer = cold("schema", cwd=tmp_path)
    assert answer.status == 0
    assert '"reviewVerification"' in answer.out
    assert answer.err == ""


def test_check_of_several_checks_goes_on_after_a_red_one(program: Program, project: Project) -> None:
    project.shell(
        ("red", "exit 7"), ("killed", "kill -9 $$"), ("shell-killed", "exit 137"), ("slow", "sleep 9"), timeoutMs=900
    )
    document = json.loads(project.config.read_text())
    no_tests = {"id": "no-tests", "command": [PYTHON, "-m", "unittest", "discover"]}
    document["reviewVerification"]["checks"].append(no_tests)
    project.config.write_text(json.dumps(document))
    answer = program("check", "--json", cwd=project.root)
    assert (answer.status, answer.json["code"]) == (1, "review_verification_baseline_failed")
    told = {check["id"]: (check["status"], check["cause"], check["outcome"]) for check in answer.json["checks"]}
    assert told == {
        "red": ("failed", "exit-nonzero", {"kind": "exited", "exitCode": 7}),
        "killed": ("failed", "signalled", {"kind": "signalled", "signal": 9}),
        "shell-killed": ("failed", "signal-exit-code", {"kind": "exited", "exitCode": 137}),
        "slow": ("failed", "timed-out", {"kind": "timed-out"}),
        "no-tests": ("unknown", "no-tests", {"kind": "exited", "exitCode": 0}),
    }


def test_probes_are_as_many_as_the_contract_demands() -> None:
    assert len(PROBES) >= 24
