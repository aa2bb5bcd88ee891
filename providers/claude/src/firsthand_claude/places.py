"""The private folders of one start, and the file that tells the CLI of the host's relay."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from firsthand.files import make_private_folder
from firsthand.review.interface import SERVER_NAME, Endpoint
from firsthand_claude.flags import Places

_ENV: Final = "/usr/bin/env"


def make_places(private: Path, endpoint: Endpoint | None) -> Places:
    """Make home, configuration, temporary and (empty) working folder, each 0700, and the MCP configuration, 0600.

    The relay is started by `env -i`: whatever the CLI holds in its environment, its credential included, ends there.

    Args:
        private: an empty 0700 folder.
        endpoint: the tool server; None for no server at all.

    Raises:
        FileWriteError: a folder can't be made.
        OSError: the file can't be.
    """
    folders = {name: private / name for name in ("home", "config", "tmp", "work")}
    for folder in folders.values():
        make_private_folder(folder)
    mcp_config = private / "mcp.json"
    write_private(mcp_config, json.dumps({"mcpServers": _servers(endpoint)}).encode())
    return Places(folders["home"], folders["config"], folders["tmp"], folders["work"], mcp_config)


def write_private(path: Path, data: bytes) -> None:
    """Make a file that was not there, 0600 from its first byte on.

    Raises:
        OSError: it exists, or can't be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)


def _servers(endpoint: Endpoint | None) -> dict[str, object]:
    if endpoint is None:
        return {}
    variables = [f"{name}={value}" for name, value in endpoint.environment.items()]
    relay = {"type": "stdio", "command": _ENV, "args": ["-i", *variables, *endpoint.argv], "env": {}}
    return {SERVER_NAME: relay}
