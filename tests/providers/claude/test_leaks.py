"""Planted settings, hooks, plug-ins, skills, memories, instructions and servers: none reaches the model or runs.

Each is shown to leak without our flags, by the same CLI in the same places: a canary that never leaks proves nothing.
"""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from firsthand.residues import Session, StateDirectory
from firsthand.review.answer import output_schema
from firsthand.review.interface import Launch, Process
from firsthand.review.launching import PlainLauncher
from firsthand_claude.flags import Asked, Places, command_line, compact, environment
from firsthand_claude.places import make_places
from firsthand_claude.provider import ClaudeProvider
from providers.claude.driving import ANSWER, MODEL, SYSTEM_PROMPT, Driver, playing, scenario
from providers.claude.planting import AGENTS_ONLY, canaries_in, plant, traces, without

GUARDS = (
    "--restricted",
    "--tools",
    "--strict-mcp-config",
    "--setting-sources",
    "--disable-slash-commands",
    "--permission-mode",
    "--permission-prompts",
)
MEMORY_GUARDS = ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "CLAUDE_CODE_DISABLE_CLAUDE_MDS")

KNOWN_TO_LEAK = (
    "CANARY-AGENT-PROJECT",
    "CANARY-AGENT-USER",
    "CANARY-CLAUDE-LOCAL-MD-CWD",
    "CANARY-CLAUDE-LOCAL-MD-PARENT",
    "CANARY-CLAUDE-MD-CWD",
    "CANARY-CLAUDE-MD-PARENT",
    "CANARY-CLAUDE-MD-PROJECT",
    "CANARY-CLAUDE-MD-USER",
    "CANARY-COMMAND-PROJECT",
    "CANARY-COMMAND-USER",
    "CANARY-ENV-PROJECT",
    "CANARY-HOOK-PROJECT-LOCAL",
    "CANARY-HOOK-PROJECT-START",
    "CANARY-HOOK-USER-START",
    "CANARY-LANGUAGE-PROJECT",
    "CANARY-MCP-CWD",
    "CANARY-MCP-LOCAL",
    "CANARY-MCP-PARENT",
    "CANARY-MCP-USER",
    "CANARY-MEMORY",
    "CANARY-PLUGIN-HOOK",
    "CANARY-PLUGIN-SKILL",
    "CANARY-RULE-PROJECT",
    "CANARY-RULE-USER",
    "CANARY-SKILL-PROJECT",
    "CANARY-SKILL-USER",
    "CANARY-STYLE-PROJECT",
)
KNOWN_TO_RUN = ("HOOK-PLUGIN", "HOOK-PROJECT", "HOOK-USER", "MCP-CWD", "MCP-LOCAL", "MCP-PARENT", "MCP-USER")


def unguarded(cli: Path, folder: Path, kept_out: tuple[str, ...], only: frozenset[str] | None = None) -> set[str]:
    """What a CLI without our guards shows the model (canaries) and runs (`ran-...`)."""
    private, outside = folder / "private", folder / "outside"
    private.mkdir(parents=True, mode=0o700)
    outside.mkdir()
    places = make_places(private, None)
    plant(places, outside, private, only)
    asked = Asked(MODEL, "high", SYSTEM_PROMPT, compact(output_schema()), (), 5)
    line = without(command_line(str(cli), str(places.mcp_config), asked), *GUARDS)
    with playing({"answer": ANSWER, "times": 0}) as model:
        auth = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "dummy"}
        variables = environment(places, retries=1, tool_timeout_ms=60_000, auth=auth)
        for name in kept_out:
            del variables[name]
        subprocess.run(
            line, env=variables, cwd=places.work, input=b"Review.", capture_output=True, check=False, timeout=60
        )
        sent = b"".join(exchange.body + str(exchange.headers).encode() for exchange in model.exchanges)
    return canaries_in(sent) | traces(outside)


@pytest.fixture(scope="session")
def leaked(cli: Path, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """All that leaks without our guards: once with memory and instruction files switched off, which starts servers
    before the first request, and once with them on."""
    folder = tmp_path_factory.mktemp("leaks")
    return unguarded(cli, folder / "1", ()) | unguarded(cli, folder / "2", MEMORY_GUARDS)


@pytest.fixture(scope="session")
def guarded(
    cli: Path, provider: ClaudeProvider, tmp_path_factory: pytest.TempPathFactory
) -> tuple[set[str], list[str], str]:
    """The same things planted around a real review: canaries and traces, the tools on the wire, the failure."""
    folder = tmp_path_factory.mktemp("guarded")
    outside = folder / "outside"
    outside.mkdir()
    with Session.open(StateDirectory.open(folder / "state")) as session:
        driver = PlantingDriver(provider, session, folder, cli)
        done = driver.review(scenario({"answer": ANSWER, "times": 0}))
    sent = b"".join(exchange.body + str(exchange.headers).encode() for exchange in done.exchanges)
    return canaries_in(sent) | traces(outside), done.exchanges[0].tool_names(), done.failure


class PlantingLauncher(PlainLauncher):
    """Plants everything at the last moment before the CLI starts."""

    def __init__(self, inner: PlainLauncher, outside: Path) -> None:
        super().__init__(inner._register, inner._private, inner._deadline)
        self._outside = outside

    @contextmanager
    def start(self, launch: Launch) -> Iterator[Process]:
        if "--print" in launch.argv:
            variables = launch.environment
            places = Places(
                Path(variables["HOME"]),
                Path(variables["CLAUDE_CONFIG_DIR"]),
                Path(variables["TMPDIR"]),
                launch.cwd,
                self._private / "mcp.json",
            )
            plant(places, self._outside, self._private)
        with super().start(launch) as process:
            yield process


@dataclasses.dataclass
class PlantingDriver(Driver):
    """Reviews in a place full of traps."""

    def launcher(self, private: Path, seconds: float = 60.0) -> PlainLauncher:
        return PlantingLauncher(super().launcher(private, seconds), self.folder / "outside")


@pytest.mark.parametrize("canary", KNOWN_TO_LEAK)
def test_it_leaks_without_our_flags_and_not_with_them(
    canary: str, leaked: set[str], guarded: tuple[set[str], list[str], str]
) -> None:
    assert canary in leaked
    assert canary not in guarded[0]


@pytest.mark.parametrize("trace", KNOWN_TO_RUN)
def test_it_runs_without_our_flags_and_not_with_them(
    trace: str, leaked: set[str], guarded: tuple[set[str], list[str], str]
) -> None:
    assert f"ran-{trace}" in leaked
    assert f"ran-{trace}" not in guarded[0]


def test_nothing_planted_has_any_effect_on_a_review(guarded: tuple[set[str], list[str], str]) -> None:
    seen, tools, failure = guarded
    assert seen == set()
    assert failure == ""
    assert sorted(tools) == [
        "StructuredOutput",
        "mcp__cm_review__mutate_check",
        "mcp__cm_review__read_file",
        "mcp__cm_review__run_check",
    ]


def test_a_lone_agents_file_is_read_without_our_flags(cli: Path, tmp_path: Path) -> None:
    """It stands in for CLAUDE.md only where there is none, so it is planted alone."""
    assert "CANARY-AGENTS-MD-CWD" in unguarded(cli, tmp_path, MEMORY_GUARDS, only=AGENTS_ONLY)


def test_a_lone_agents_file_is_not_read_with_them(driver: Driver, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("CANARY-AGENTS-MD-PARENT")
    done = driver.review(scenario({"answer": ANSWER}))
    assert done.private.is_relative_to(tmp_path)
    assert done.failure == ""
    assert canaries_in(done.wire()) == set()
