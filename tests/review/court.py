"""A real court: a yard, its desk, the tool server, the relay as a process, and the official client at its end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from mcp import StdioServerParameters
from mcp.client.session import ClientSession
from mcp.client.stdio import stdio_client

from checks.yard import PYTEST, Kept, Yard
from firsthand.records import ToolCall
from firsthand.review.server import Desk, ToolServer

FILES = {
    "value.py": "def double(x):\n    return x * 2\n",
    "test_value.py": "from value import double\n\n\ndef test_double():\n    assert double(4) == 8\n",
    "README.md": "Doubles.\n",
}


@dataclass
class Logged(Kept):
    """Keeps the reviewer's calls as well."""

    calls: list[ToolCall] = field(default_factory=list)

    def tool_call(self, call: ToolCall) -> None:
        self.calls.append(call)


@dataclass
class Court:
    """One open review without a reviewer."""

    yard: Yard
    kept: Logged
    desk: Desk
    server: ToolServer

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """The official client over a relay that it starts, as a reviewer's program would."""
        endpoint = self.server.endpoint
        parameters = StdioServerParameters(
            command=endpoint.argv[0], args=list(endpoint.argv[1:]), env=dict(endpoint.environment)
        )
        async with stdio_client(parameters) as (reading, writing), ClientSession(reading, writing) as session:
            await session.initialize()
            yield Client(session)

    def ask(self, *calls: tuple[str, Any]) -> list[Answer]:
        """Make calls one after the other over one relay."""

        async def work() -> list[Answer]:
            async with self.client() as client:
                return [await client.call(tool, arguments) for tool, arguments in calls]

        return anyio.run(work)


@dataclass
class Answer:
    """One answer as the client sees it."""

    is_error: bool
    text: str

    @property
    def value(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.text)
        return value


@dataclass
class Client:
    """The official client, with answers in plain terms."""

    session: ClientSession

    async def call(self, tool: str, arguments: Any) -> Answer:
        result = await self.session.call_tool(tool, arguments)
        (content,) = result.content
        assert content.type == "text"
        return Answer(bool(result.is_error), content.text)


@contextmanager
def open_court(yard: Callable[..., Yard], files: Mapping[str, bytes | str] = FILES, **fields: Any) -> Iterator[Court]:
    """A court over a yard; everything is closed at the end, and no process may be left."""
    command = fields.pop("command", (*PYTEST, "-p", "no:cacheprovider", "test_value.py"))
    made = yard(files, command, **fields)
    kept = Logged()
    folder: Path = made.ground.folder / "server"
    folder.mkdir(mode=0o700)
    with Desk(made.ground, made.registered, kept) as desk, ToolServer(folder, desk) as server:
        yield Court(made, kept, desk, server)
    assert not made.processes.alive
