"""How a runner is asked for a report: through its environment alone, argv stays as registered."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias
from urllib.parse import quote

from firsthand.records import RunnerName

REPORT_BYTES: Final = 16 * 1024 * 1024
"""Most that a report file may hold."""

Form: TypeAlias = Literal["pytest-junit", "node-events", "go-events", "none"]

# One JSON array a line: kind, file relative to the working directory, nesting, name, "suite" or "", skipped, todo, and
# the first line of the failure; the last line says that the run came to its end. Node's own junit reporter drops a
# parent's own failure, does not say which test never ended, and lists a file that ended early as a passed test.
_NODE_REPORTER: Final = """
const kinds = new Set(["test:enqueue", "test:start", "test:pass", "test:fail"]);
const here = process.cwd() + "/";
const short = (file) => file && file.startsWith(here) ? file.slice(here.length) : file || "";
function said(error) {
  if (!error) return "";
  const cause = error.cause;
  const text = cause && cause.message !== undefined
    ? (cause.code && /^ERR_MODULE/.test(cause.code) ? cause.code : cause.name || "Error") + ": " + cause.message
    : String(cause || error.message || "");
  return text.split("\\n")[0].slice(0, 300);
}
export default async function* (source) {
  for await (const event of source) {
    if (!kinds.has(event.type)) continue;
    const data = event.data || {};
    const details = data.details || {};
    yield JSON.stringify([
      event.type.slice(5), short(data.file), data.nesting || 0, String(data.name || ""), details.type || "",
      data.skip !== undefined && data.skip !== false, data.todo !== undefined && data.todo !== false,
      said(details.error),
    ]) + "\\n";
  }
  yield '["end"]\\n';
}
"""


@dataclass(frozen=True, slots=True)
class Reporting:
    """What one run is asked for.

    Attributes:
        form: what the report will look like; `none` when the runner can only be read by its summary.
        file: name of the report in the root of the working copy; empty when it comes on stdout or not at all. It is
            new for every run, so that no command finds or guesses the one of another.
        environment: variables that ask for it.
    """

    form: Form
    file: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


def reporting_for(runner: RunnerName, command: Sequence[str]) -> Reporting:
    """Ask this runner for a report, where its environment alone can do so.

    A command that our request would break is left alone: node refuses an unequal number of reporters and destinations
    (one of its own without a destination prints to stdout only while it is alone), and a pytest without its junit
    plug-in does not know the option.
    """
    match runner:
        case "pytest":
            if any("no:junitxml" in word for word in command):
                return Reporting("none")
            file = _fresh_name("xml")
            options = f"--junitxml={file} -o junit_logging=no -o junit_family=xunit2"
            return Reporting("pytest-junit", file, {"PYTEST_ADDOPTS": options})
        case "node-test":
            reporters = sum(word.startswith("--test-reporter") for word in command)
            destinations = sum(word.startswith("--test-reporter-destination") for word in command)
            if reporters != 2 * destinations:
                return Reporting("none")
            file = _fresh_name("jsonl")
            reporter = "data:text/javascript," + quote(" ".join(_NODE_REPORTER.split()), safe="")
            options = (
                "--test-reporter=spec --test-reporter-destination=stdout"
                f" --test-reporter={reporter} --test-reporter-destination={file}"
            )
            return Reporting("node-events", file, {"NODE_OPTIONS": options})
        case "go-test":
            return Reporting("go-events", "", {"GOFLAGS": "-json"})
        case "unittest" | "cargo-test" | "exit":
            return Reporting("none")


def _fresh_name(suffix: str) -> str:
    return f".firsthand-{secrets.token_hex(8)}.{suffix}"
