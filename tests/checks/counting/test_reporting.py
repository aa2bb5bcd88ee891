from __future__ import annotations

import shlex
from urllib.parse import unquote

import pytest

from firsthand.checks.counting import reporting_for
from firsthand.records import RunnerName


def test_pytest_is_asked_for_a_file_in_its_own_folder() -> None:
    reporting = reporting_for("pytest", ["pytest"])
    words = shlex.split(reporting.environment["PYTEST_ADDOPTS"])
    assert words[0] == f"--junitxml={reporting.file}"
    # Relative, so that it lands in the copy wherever a backend shows it, and no path has to be quoted.
    assert "/" not in reporting.file
    assert reporting.file.startswith(".firsthand-")


def test_every_run_has_a_report_of_its_own_name() -> None:
    assert len({reporting_for(runner, []).file for runner in ("pytest", "node-test") for _ in range(50)}) == 100


def test_node_gets_one_reporter_for_people_and_one_for_us() -> None:
    reporting = reporting_for("node-test", ["node", "--test"])
    words = reporting.environment["NODE_OPTIONS"].split(" ")
    assert words[0::2][0] == "--test-reporter=spec"
    assert words[1] == "--test-reporter-destination=stdout"
    assert words[3] == f"--test-reporter-destination={reporting.file}"
    assert "export default async function*" in unquote(words[2])
    assert len(words) == 4, "nothing in the reporter may be split or quoted"


def test_node_reporters_with_destinations_of_their_own_do_not_stand_in_the_way() -> None:
    command = ["node", "--test", "--test-reporter=junit", "--test-reporter-destination", "own.xml"]
    assert reporting_for("node-test", command).form == "node-events"


@pytest.mark.parametrize(
    ("runner", "command"),
    [
        ("node-test", ["node", "--test", "--test-reporter=tap"]),
        ("node-test", ["node", "--test-reporter", "dot", "--test"]),
        ("pytest", ["pytest", "-p", "no:junitxml"]),
        ("pytest", ["pytest", "-pno:junitxml"]),
        ("unittest", ["python", "-m", "unittest"]),
        ("cargo-test", ["cargo", "test"]),
        ("exit", ["make"]),
    ],
)
def test_a_command_that_a_request_would_break_or_not_reach_is_left_alone(
    runner: RunnerName, command: list[str]
) -> None:
    reporting = reporting_for(runner, command)
    assert (reporting.form, reporting.file, dict(reporting.environment)) == ("none", "", {})


def test_go_reports_on_stdout() -> None:
    reporting = reporting_for("go-test", ["go", "test"])
    assert (reporting.file, reporting.environment) == ("", {"GOFLAGS": "-json"})
