"""What the host adds to a review: until the model is first asked, in the course of 12 calls, and in memory.

The reviewer is the real CLI against a scripted model on loopback, so no account is used and the model takes no time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from unittest.mock import patch

from benchmarks.harness.bench import Bench
from benchmarks.harness.clock import in_turns
from benchmarks.harness.row import MS, CannotRunError, Row, Samples
from benchmarks.projects.cart import cart_project

from firsthand.canonical import JSONValue, canonical_bytes
from firsthand.engine import reviewing
from firsthand.engine.providers import this_host
from firsthand.files import make_private_folder
from firsthand.plugins import Observers
from firsthand.records import Budget, CheckRun, ToolCall
from firsthand.review.interface import Exit, Host, Incapable, Launch, Process, ProgramIdentity
from firsthand.review.launching import PlainLauncher
from firsthand_claude.authentication import variables
from firsthand_claude.flags import environment
from firsthand_claude.places import make_places
from firsthand_claude.program import Ask, Programs
from firsthand_claude.provider import RETRIES, ClaudeProvider
from firsthand_claude.scripted import Call, Scenario, ScriptedEndpoint, Turn

CALLS: Final = 12
_LIMIT_LATER_MS: Final = 1000.0
_LIMIT_SHARE_PERCENT: Final = 10.0
_LIMIT_MEMORY_MB: Final = 200.0
_WARM_UP: Final = 1
_ANSWER_TOOL: Final = "StructuredOutput"
_BUDGET: Final = Budget(timeout_ms=300_000, max_turns=CALLS + 8)
_PROMPT: Final = b"Say one word."
_READ: Final = ("README.md", "cart.py", "tests/__init__.py", "tests/test_cart.py", "cart.py", "tests/test_cart.py")
_MUTATED: Final = 3

_PROGRAM: Final = """
import atexit, os, sys

def tell():
    with open("/proc/self/status") as status, open(os.environ["BENCH_PEAK"], "w") as answer:
        answer.write(next(line.split()[1] for line in status if line.startswith("VmHWM")))

atexit.register(tell)
from firsthand.cli import main
sys.exit(main())
"""
"""`firsthand` that notes its own peak at its end. Its children's, the CLI's above all, is not in it."""


def review(bench: Bench) -> Iterator[Row]:
    """The CLI without tools, `run_review`, and `firsthand review` as a process, in turns."""
    stage = _Stage(bench)
    later = in_turns((stage.bare, stage.host, stage.process), bench.times(5), warm_up=_WARM_UP)
    bare, host, process = (
        Samples.of_seconds(name, values)
        for name, values in zip(("CLI without tools", "run_review", "firsthand review"), later, strict=True)
    )
    yield Row(
        about="the model's first request",
        own=host,
        other=bare,
        figure="added",
        limit=_LIMIT_LATER_MS,
        note="from the call of run_review, which freezes, digests the CLI, starts server and CLI, to the request's "
        "arrival; against the start of the CLI with the same environment and model, no tools, server and schema",
    )
    yield Row(
        about="the same without the digest of the CLI",
        own=Samples(
            "run_review",
            tuple(
                value - one.identity_s * MS for value, one in zip(host.values, stage.reviews[_WARM_UP:], strict=True)
            ),
        ),
        other=bare,
        figure="added",
    )
    yield Row(
        about="the same from the program's start",
        own=process,
        other=bare,
        figure="added",
        note="with Python and all imports, which run_review finds loaded",
    )
    yield from share_rows(stage.reviews[_WARM_UP:])
    if stage.peaks_mb:
        yield Row(
            about="the host's peak memory",
            own=Samples("firsthand review", tuple(stage.peaks_mb[_WARM_UP:])),
            other=None,
            figure="own",
            unit="MB",
            limit=_LIMIT_MEMORY_MB,
            note="the kernel's count of that one process's largest resident size, tool server included; CLI, relay "
            "and checks are other processes",
        )


@dataclass(frozen=True, slots=True)
class Spent:
    """Where the seconds of one review went; all by the host's monotonic clock.

    Attributes:
        whole_s: from the call of `run_review` to its return.
        cli_s: from the CLI's start to the end of its output; what it waited for tool calls is in it.
        identity_s: the CLI's version and SHA-256, asked once in the process.
        calls_s: from each tool call's arrival at the server to its answer, together. One at a time.
        commands_s: the checks' commands, from their release in the sandbox to their end, together.
        runs: how many of them.
    """

    whole_s: float
    cli_s: float
    identity_s: float
    calls_s: float
    commands_s: float
    runs: int

    @property
    def around_s(self) -> float:
        """Before the CLI's start and after its output: freezing, placing checks, serving, judging, sealing."""
        return self.whole_s - self.identity_s - self.cli_s

    @property
    def serving_s(self) -> float:
        """In the calls beyond the commands: the CLI waits for us. Sandboxes' starts, rewritings, comparisons."""
        return self.calls_s - self.commands_s

    @property
    def own_s(self) -> float:
        """All but CLI, commands and the digest of the CLI."""
        return self.around_s + self.serving_s

    @property
    def share_percent(self) -> float:
        """`own_s` of the review without the digest."""
        return 100 * self.own_s / (self.whole_s - self.identity_s)

    @property
    def share_with_identity_percent(self) -> float:
        """The same with the digest of the CLI as ours."""
        return 100 * (self.own_s + self.identity_s) / self.whole_s


def share_rows(reviews: Sequence[Spent]) -> Iterator[Row]:
    """Our share of some reviews, and what it is made of."""
    commands = sum(one.commands_s for one in reviews) / len(reviews)
    cli = sum(one.cli_s - one.calls_s for one in reviews) / len(reviews)
    yield Row(
        about=f"own share of a review with {CALLS} calls",
        own=Samples("own", tuple(one.share_percent for one in reviews)),
        other=None,
        figure="own",
        unit="%",
        limit=_LIMIT_SHARE_PERCENT,
        note=f"all but the CLI ({cli:.1f} s on average without its waiting for calls), the checks' commands "
        f"({commands:.1f} s) and the one digest of the CLI; the model is scripted and takes no time; the start of a "
        "sandbox is ours, the relay's passing on counts as the CLI's",
    )
    yield Row(
        about="the same with the digest of the CLI as ours",
        own=Samples("own", tuple(one.share_with_identity_percent for one in reviews)),
        other=None,
        figure="own",
        unit="%",
    )
    for about, values, note in (
        ("of it: before and after the CLI", [one.around_s for one in reviews], "freezing, placing, judging, sealing"),
        (
            "of it: in the calls, beyond the commands",
            [one.serving_s for one in reviews],
            f"sandboxes' starts, for {reviews[0].runs} runs of the check and each rewriting of a mutated file",
        ),
        ("the digest of the CLI", [one.identity_s for one in reviews], "once in a process; about 400 MB are read"),
    ):
        yield Row(about=about, own=Samples.of_seconds("own", values), other=None, figure="own", note=note)


def spent(
    *, whole_s: float, cli_s: float, identity_s: float, calls: Sequence[ToolCall], runs: Sequence[CheckRun]
) -> Spent:
    """Add up the records of one review.

    Raises:
        CannotRunError: it was not the review that was to be measured.
    """
    failed = [f"{call.tool}: {call.code}" for call in calls if call.result != "ok"]
    if len(calls) != CALLS or failed:
        raise CannotRunError(f"{len(calls)} calls instead of {CALLS}; not served: {', '.join(failed) or 'none'}")
    return Spent(
        whole_s=whole_s,
        cli_s=cli_s,
        identity_s=identity_s,
        calls_s=sum(call.duration_ms for call in calls) / 1000,
        commands_s=sum(run.command.outcome.duration_ms for run in runs) / 1000,
        runs=len(runs),
    )


def scenario() -> Scenario:
    """6 reads, 3 checks, 3 mutations, one call a turn so that none waits for another, then an approval."""
    calls: list[tuple[str, dict[str, JSONValue]]] = [("read_file", {"path": path}) for path in _READ]
    for number in range(_MUTATED):
        mutation = {"path": "cart.py", "old": f"value + {number}\n", "new": f"value - {number} - 1\n"}
        calls += [("run_check", {"checkId": "cart"}), ("mutate_check", {"checkId": "cart", **mutation})]
    answer = {"verdict": "approved", "summary": "It adds.", "findings": []}
    turns = [Turn(calls=(Call(tool, arguments),)) for tool, arguments in calls]
    return Scenario("benchmark", (*turns, Turn(calls=(Call(_ANSWER_TOOL, answer),))))


def find_cli(host: Host) -> ProgramIdentity:
    """The CLI that is driven.

    Raises:
        CannotRunError: none is installed, or it can't be used; the reason says which.
    """
    capability = ClaudeProvider().capability(host)
    if isinstance(capability, Incapable):
        raise CannotRunError(f"{capability.reason}; {capability.next_step}")
    return capability.program


class _Stage:
    """One project and one diagnosis for all rounds; each side gives the seconds until its model was first asked."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._model = ClaudeProvider.scripted_model
        # Nothing but the way to programs: no key, no login, no settings of the user's.
        self._bare = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(bench.scratch / "home")}
        self._cli = Path(find_cli(this_host(None, self._bare)).path)
        self._config, _ = cart_project(bench.scratch / "project", mutations=_MUTATED)
        self._diagnosis = bench.scratch / "review.json"
        diagnosis = reviewing.run_preflight(
            self._config,
            model=self._model,
            effort="",
            budget=_BUDGET,
            program=self._cli,
            state_path=bench.state,
            host=this_host(self._cli, self._bare),
        )
        self._diagnosis.write_bytes(canonical_bytes(diagnosis.as_json()))
        self._starts = 0
        self.reviews: list[Spent] = []
        self.peaks_mb: list[float] = []

    def bare(self) -> float:
        """The CLI alone: our environment for it, in private folders as new as ours, and no server."""
        self._starts += 1
        private = self._bench.scratch / f"bare-{self._starts}"
        make_private_folder(private)
        with ScriptedEndpoint(Scenario("one word", (Turn(text="Done.", times=0),))) as model:
            auth = variables(this_host(None, {"ANTHROPIC_BASE_URL": model.url}), None)
            places = make_places(private, None)
            command = [str(self._cli), "--print", "--tools", "", "--model", self._model]
            start = time.monotonic()
            ended = subprocess.run(
                [*command, "--output-format", "stream-json", "--verbose"],
                env=environment(places, retries=RETRIES, tool_timeout_ms=_BUDGET.timeout_ms, auth=auth),
                cwd=places.work,
                input=_PROMPT,
                capture_output=True,
                check=False,
            )
            if ended.returncode != 0:
                raise CannotRunError(f"the CLI alone: {(ended.stderr or ended.stdout)[-300:].decode(errors='replace')}")
            return _first_request(model) - start

    def host(self) -> float:
        """One review by `run_review`, in this process."""
        with ScriptedEndpoint(scenario()) as model, watching() as seen:
            start = time.monotonic()
            done = reviewing.run_review(
                self._config,
                self._diagnosis,
                "final",
                state_path=self._bench.state,
                out=None,
                key=None,
                observers=Observers(),
                host=this_host(self._cli, self._bare | {"ANTHROPIC_BASE_URL": model.url}),
            )
            whole_s = time.monotonic() - start
            evidence = done.sealed.evidence
            if evidence.status != "passed" or evidence.dispatch is None:
                raise CannotRunError(f"the review came to {evidence.status} ({evidence.code}): {done.failure}")
            self.reviews.append(
                spent(
                    whole_s=whole_s,
                    cli_s=seen.cli_s,
                    identity_s=seen.identity_s,
                    calls=evidence.dispatch.tool_calls,
                    runs=evidence.runs,
                )
            )
            return _first_request(model) - start

    def process(self) -> float:
        """The same review by `firsthand review`, started anew."""
        peak = self._bench.scratch / "peak"
        known = {"PYTHONPYCACHEPREFIX": str(self._bench.scratch / "bytecode"), "BENCH_PEAK": str(peak)}
        program: list[str | Path] = [self._bench.program()]
        if sys.platform == "linux":
            program = [sys.executable, "-c", _PROGRAM]
        command = [*program, "review", "--stage", "final", "--review", self._diagnosis, "--config", self._config]
        with ScriptedEndpoint(scenario()) as model:
            start = time.monotonic()
            ended = subprocess.run(
                [*command, "--state", self._bench.state, "--json"],
                env=self._bare | known | {"ANTHROPIC_BASE_URL": model.url},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
            answer = json.loads(ended.stdout or b"{}")
            if ended.returncode != 0 or answer.get("toolCalls") != CALLS:
                raise CannotRunError(f"firsthand review: {answer or ended.stderr[-300:].decode(errors='replace')}")
            if sys.platform == "linux":
                self.peaks_mb.append(int(peak.read_text(encoding="ascii")) * 1024 / 1e6)
            return _first_request(model) - start


def _first_request(model: ScriptedEndpoint) -> float:
    asked = model.messages()
    if not asked:
        raise CannotRunError("the model was never asked")
    return asked[0].at_s


@dataclass(slots=True)
class Watch:
    """What was seen of one review from outside its code; for the terms see `Spent`."""

    cli_s: float = 0.0
    identity_s: float = 0.0


@contextmanager
def watching() -> Iterator[Watch]:
    """Time the CLI's run, and the asking for its identity, of the reviews of this process in the meantime."""
    seen = Watch()
    identity = Programs.identity

    def timed_identity(programs: Programs, host: Host, ask: Ask) -> ProgramIdentity | Incapable:
        start = time.monotonic()
        try:
            return identity(programs, host, ask)
        finally:
            seen.identity_s += time.monotonic() - start

    class TimedLauncher(PlainLauncher):
        @contextmanager
        def start(self, launch: Launch) -> Iterator[Process]:
            with super().start(launch) as process:
                yield _TimedProcess(process, seen)

    with (
        patch.object(reviewing, "PlainLauncher", TimedLauncher),
        patch.object(Programs, "identity", timed_identity),
    ):
        yield seen


class _TimedProcess:
    """A process, timed from its start to the end of its output; collecting it and looking for its kin is ours."""

    def __init__(self, process: Process, seen: Watch) -> None:
        self.pid = process.pid
        self._process = process
        self._seen = seen
        self._start = time.monotonic()

    def lines(self) -> Iterator[bytes]:
        try:
            yield from self._process.lines()
        finally:
            self._seen.cli_s += time.monotonic() - self._start

    def wait(self) -> Exit:
        return self._process.wait()

    def stop(self) -> None:
        self._process.stop()
