"""The one command line and the one environment for every kind of auth, and the digest that binds a review to them.

Measured on CLI 2.1.332 (see docs/providers.md for what leaks without each of them). `--bare` is not among the flags:
it refuses account logins, and one set must serve every kind of auth. `--no-session-persistence` is not either: the
transcript is wanted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firsthand.canonical import JSONValue, canonical_digest
from firsthand.review.interface import SERVER_NAME

TOOL_PREFIX: Final = f"mcp__{SERVER_NAME}__"
ANSWER_TOOL: Final = "StructuredOutput"
"""The CLI's own tool for the structured answer."""
PERMISSION_MODE: Final = "dontAsk"
_PLACE: Final = "<place>"
_EACH: Final = "<each dispatch>"

SERVER_START_MS: Final = 20_000
"""By then the tool server must have answered the CLI."""

HIDDEN_FLAGS: Final = frozenset({"--max-turns"})
"""Flags that the CLI accepts and does not list in its help; a CLI that lacks one ends at once, in the preflight."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What differs from one command line to the next.

    Attributes:
        model, effort: as given; an empty effort leaves the flag out.
        system_prompt: constant text.
        output_schema: of the answer, as compact JSON.
        tools: plain names of the host's tools; empty for a tool-less review.
        max_turns: of the budget.
    """

    model: str
    effort: str
    system_prompt: str
    output_schema: str
    tools: tuple[str, ...]
    max_turns: int


def compact(value: Mapping[str, JSONValue]) -> str:
    """JSON on one line, in the order given."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def command_line(program: str, mcp_config: str, asked: Asked) -> tuple[str, ...]:
    """The whole argv. The prompt is not in it: it goes to standard input, since `--tools ""` would swallow it.

    Args:
        program: absolute path of the CLI.
        mcp_config: absolute path of the file that names the relay, and nothing else, as the one MCP server.
        asked: the rest.
    """
    allowed = ",".join(f"{TOOL_PREFIX}{tool}" for tool in asked.tools)
    return (
        program,
        "--print",
        "--restricted",  # no built-in tool that runs anything; no user, project or local settings
        *("--tools", ""),  # no built-in tool at all
        "--strict-mcp-config",  # no server but ours
        *("--setting-sources", ""),
        "--disable-slash-commands",  # no skills and commands
        *("--permission-mode", PERMISSION_MODE),
        *("--permission-prompts", "none"),
        *(("--allowedTools", allowed) if allowed else ()),
        *("--model", asked.model),
        *(("--effort", asked.effort) if asked.effort else ()),
        *("--max-turns", str(asked.max_turns)),
        *("--output-format", "stream-json"),
        "--verbose",
        *("--system-prompt", asked.system_prompt),
        *("--mcp-config", mcp_config),
        *("--json-schema", asked.output_schema),
    )


def needed_flags(asked: Asked) -> tuple[str, ...]:
    """Every flag of that command line which the CLI's help must list, sorted."""
    line = command_line("claude", "", asked)
    return tuple(sorted({word for word in line if word.startswith("--")} - HIDDEN_FLAGS))


@dataclass(frozen=True, slots=True)
class Places:
    """The folders and the file of one start, all inside the private folder of the dispatch."""

    home: Path
    config: Path
    temporary: Path
    work: Path
    mcp_config: Path


def environment(places: Places, *, retries: int, tool_timeout_ms: int, auth: Mapping[str, str]) -> dict[str, str]:
    """The CLI's whole environment, built from empty.

    Args:
        places: where everything is.
        retries: how often the CLI repeats a request that failed.
        tool_timeout_ms: for one tool call: what is left of the budget, since a mutation needs several runs of a check.
        auth: the base URL and the one credential.
    """
    return {**_fixed(places, retries), "MCP_TOOL_TIMEOUT": str(tool_timeout_ms), **auth}


def _fixed(places: Places | None, retries: int) -> dict[str, str]:
    def place(path: Path | None) -> str:
        return _PLACE if path is None else str(path)

    return {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": place(places.home if places else None),
        "CLAUDE_CONFIG_DIR": place(places.config if places else None),
        "CLAUDE_CODE_TMPDIR": place(places.temporary if places else None),
        "TMPDIR": place(places.temporary if places else None),
        "ENABLE_TOOL_SEARCH": "false",  # else a placeholder tool appears on the wire
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_MCP_ALLOWLIST_ENV": "1",  # the credential stays out of what the CLI starts
        "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
        "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
        "CLAUDE_CODE_MAX_RETRIES": str(retries),
        "MCP_TIMEOUT": str(SERVER_START_MS),
    }


def flag_set_digest(asked: Asked, *, retries: int) -> str:
    """What the diagnosis binds: the command line and the fixed environment, without places, budget and auth."""
    line: list[JSONValue] = list(command_line(_PLACE, _PLACE, asked))
    line[line.index("--max-turns") + 1] = _EACH
    variables: dict[str, JSONValue] = dict(_fixed(None, retries))
    return canonical_digest({"argv": line, "environment": variables})
