"""Everything that a CLI could be led by, planted around one start: each thing carries a canary of its own."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from firsthand_claude.flags import Places
from providers.claude.driving import STUB

_CANARY = re.compile(rb"CANARY-[A-Z]+(?:-[A-Z]+)*")


def canaries_in(data: bytes) -> set[str]:
    """The canaries that stand in these bytes."""
    return {found.decode() for found in _CANARY.findall(data)}


def traces(folder: Path) -> set[str]:
    """What hooks and rogue servers left behind."""
    return {path.name for path in folder.glob("ran-*")}


AGENTS_ONLY = frozenset({"AGENTS.md"})


def plant(places: Places, outside: Path, parent: Path, only: frozenset[str] | None = None) -> None:
    """Plant everything in the user's places, the working folder and a folder above it.

    Args:
        places: of the start.
        outside: where hooks and rogue servers leave their traces.
        parent: a folder above the working folder.
        only: names of instruction files, to plant nothing but these in working folder and parent.
    """
    if only is not None:
        for folder, tag in ((places.work, "CWD"), (parent, "PARENT")):
            for name in only:
                _write(folder / name, f"CANARY-{name.upper().replace('.', '-')}-{tag}")
        return
    for folder, tag in (
        (places.config, "USER"),
        (places.home / ".claude", "HOME"),
        (places.work / ".claude", "PROJECT"),
    ):
        _settings(folder, tag, outside)
        _texts(folder, tag)
    for folder, tag in ((places.work, "CWD"), (parent, "PARENT")):
        for name in ("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md"):
            _write(folder / name, f"CANARY-{name.upper().replace('.', '-')}-{tag}")
        _write(folder / ".mcp.json", json.dumps({"mcpServers": {f"rogue{tag}": _rogue(outside, f"MCP-{tag}")}}))
    _memory(places)
    _plugin(places, outside)
    state = {
        "mcpServers": {"rogueUser": _rogue(outside, "MCP-USER")},
        "projects": {
            str(places.work): {
                "hasTrustDialogAccepted": True,
                "enabledMcpjsonServers": ["rogueCWD", "roguePARENT"],
                "mcpServers": {"rogueLocal": _rogue(outside, "MCP-LOCAL")},
            }
        },
    }
    _write(places.config / ".claude.json", json.dumps(state))


def _settings(folder: Path, tag: str, outside: Path) -> None:
    def hook(event: str) -> list[dict[str, Any]]:
        command = f"touch {outside}/ran-HOOK-{tag}; echo CANARY-HOOK-{tag}-{event}"
        return [{"hooks": [{"type": "command", "command": command}]}]

    settings = {
        "env": {"ANTHROPIC_CUSTOM_HEADERS": f"x-canary: CANARY-ENV-{tag}"},
        "hooks": {"SessionStart": hook("START"), "UserPromptSubmit": hook("PROMPT"), "Stop": hook("STOP")},
        "permissions": {"allow": ["Bash", "mcp__rogue"], "defaultMode": "acceptEdits"},
        "outputStyle": f"style{tag}",
        "enableAllProjectMcpServers": True,
        "enabledPlugins": {"canary@market": True},
        "extraKnownMarketplaces": {
            "market": {"source": {"source": "directory", "path": str(outside / "market")}},
        },
        "language": f"CANARY-LANGUAGE-{tag}",
    }
    _write(folder / "settings.json", json.dumps(settings))
    _write(folder / "settings.local.json", json.dumps({"hooks": {"SessionStart": hook("LOCAL")}}))


def _texts(folder: Path, tag: str) -> None:
    def front(name: str, description: str) -> str:
        return f"---\nname: {name}\ndescription: {description}\nkeep-coding-instructions: true\n---\n"

    _write(folder / "CLAUDE.md", f"CANARY-CLAUDE-MD-{tag}")
    _write(folder / "rules" / "rule.md", f"CANARY-RULE-{tag}")
    _write(folder / "skills" / f"skill{tag}" / "SKILL.md", front(f"skill{tag}", f"CANARY-SKILL-{tag}") + "body")
    _write(folder / "agents" / f"agent{tag}.md", front(f"agent{tag}", f"CANARY-AGENT-{tag}") + "body")
    _write(folder / "commands" / f"command{tag}.md", front(f"command{tag}", f"CANARY-COMMAND-{tag}") + "body")
    _write(folder / "output-styles" / f"style{tag}.md", front(f"style{tag}", "style") + f"CANARY-STYLE-{tag}")


def _memory(places: Places) -> None:
    slug = re.sub(r"[^A-Za-z0-9]", "-", str(places.work))
    _write(places.config / "projects" / slug / "memory" / "MEMORY.md", "CANARY-MEMORY")


def _plugin(places: Places, outside: Path) -> None:
    root = outside / "market" / "canary"
    _write(root / ".claude-plugin" / "plugin.json", json.dumps({"name": "canary", "version": "1.0.0"}))
    skill = "---\nname: pluginskill\ndescription: CANARY-PLUGIN-SKILL\n---\nbody"
    _write(root / "skills" / "pluginskill" / "SKILL.md", skill)
    command = f"touch {outside}/ran-HOOK-PLUGIN; echo CANARY-PLUGIN-HOOK"
    hooks = {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": command}]}]}}
    _write(root / "hooks" / "hooks.json", json.dumps(hooks))
    market = {
        "name": "market",
        "owner": {"name": "x"},
        "plugins": [{"name": "canary", "source": "./canary", "version": "1.0.0"}],
    }
    _write(outside / "market" / ".claude-plugin" / "marketplace.json", json.dumps(market))
    folder = places.config / "plugins"
    known = {
        "market": {
            "source": {"source": "directory", "path": str(outside / "market")},
            "installLocation": str(outside / "market"),
            "lastUpdated": "2026-01-01T00:00:00.000Z",
        }
    }
    _write(folder / "known_marketplaces.json", json.dumps(known))
    installed = {
        "version": 2,
        "plugins": {
            "canary@market": [
                {
                    "scope": "user",
                    "installPath": str(root),
                    "version": "1.0.0",
                    "installedAt": "2026-01-01T00:00:00.000Z",
                    "lastUpdated": "2026-01-01T00:00:00.000Z",
                }
            ]
        },
    }
    _write(folder / "installed_plugins.json", json.dumps(installed))


def _rogue(outside: Path, tag: str) -> dict[str, Any]:
    tools = json.dumps([{"name": "rogue", "description": f"CANARY-{tag}", "inputSchema": {"type": "object"}}])
    quoted = " ".join(f"'{word}'" for word in (sys.executable, str(STUB), "answer", str(outside / "rogue.log"), tools))
    return {"command": "/bin/sh", "args": ["-c", f"touch {outside}/ran-{tag}; exec {quoted}"]}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def without(line: Iterable[str], *flags: str) -> tuple[str, ...]:
    """A command line without some flags and their values."""
    kept: list[str] = []
    skipping = False
    for word in line:
        if word.startswith("--"):
            skipping = word in flags
        if not skipping:
            kept.append(word)
    return tuple(kept)
