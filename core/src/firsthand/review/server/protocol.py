"""The tool server in the official SDK's terms: what it lists, and how every call comes to the desk."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from firsthand import __version__
from firsthand.review.interface import SERVER_NAME, ToolSchema
from firsthand.review.server.desk import CANCELLED, USAGE, Desk, Reply
from firsthand.review.server.log import CallLog, Ticket
from firsthand.review.server.queueing import Errand, Queues
from firsthand.review.server.showing import shown_error
from firsthand.rules import LIMIT_TOOL_CALLS

CALL_LIMIT: Final = "call_limit"
"""Code of a call beyond those that are served."""
MESSAGE_LIMIT: Final = "message_limit"
"""Code of a call that is too long."""
LIMIT_MESSAGE_BYTES: Final = 1024 * 1024
"""Longest call, and longest answer. Source: the contract, Reviewer tools."""

_RESULT_CHARACTERS: Final = 500_000
_CALL: Final = "tools/call"
_FAULT: Final = "internal_error"


@dataclass(frozen=True, slots=True)
class Service:
    """What one server answers from. With no queues it refuses every call, and only shows its tools."""

    tools: tuple[ToolSchema, ...]
    log: CallLog | None
    desk: Desk | None
    queues: Queues | None


def build_server(service: Service) -> Server[Any]:
    """A server with exactly these tools and no other feature."""

    async def list_tools(
        _context: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=tool.description,
                    input_schema=dict(tool.input_schema),
                    # Without it the known program replaces a long result by a note that its model can't open.
                    _meta={"anthropic/maxResultSizeChars": _RESULT_CHARACTERS},
                )
                for tool in service.tools
            ]
        )

    async def call_tool(
        _context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        # Reached by no call: the middleware answers all of them. It stands here so that tools are announced.
        raise AssertionError(params.name)

    async def every_call(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method != _CALL:
            return await call_next(ctx)
        # Before the SDK looks at the parameters: a call that it would refuse counts like any other.
        reply = await _answer(service, ctx.params)
        result: dict[str, Any] = {
            "content": [{"type": "text", "text": reply.text}],
            "isError": reply.result != "ok",
        }
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            result["resultType"] = "complete"
        return result

    server: Server[Any] = Server(SERVER_NAME, version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)
    # Nothing but ours: nothing about a review is told to anyone else.
    server.middleware = [every_call]
    return server


async def _answer(service: Service, params: Mapping[str, Any] | None) -> Reply:
    given = params or {}
    tool, arguments = given.get("name"), given.get("arguments")
    if service.log is None or service.queues is None or service.desk is None:
        return Reply("refused", USAGE, shown_error("this server only shows its tools"))
    # No await before this line: calls are numbered as they arrive.
    ticket = service.log.arrive(tool, arguments)
    refusal = _refusal(service, ticket, tool, given)
    if refusal is not None:
        return _entered(service.log, ticket, refusal)
    errand = service.queues.send(ticket.tool, {} if arguments is None else arguments)
    try:
        reply = await asyncio.shield(asyncio.wrap_future(errand.future))
    except asyncio.CancelledError:
        await _take_back(service.log, ticket, errand)
        raise
    except Exception:
        # A fault of ours is no word to a model, and the call has its record all the same.
        _entered(service.log, ticket, Reply("error", _FAULT, shown_error("the host failed to serve this call")))
        raise
    _entered(service.log, ticket, reply)
    if reply.page is not None:
        service.desk.delivered.add(reply.page.path, reply.page.start, reply.page.end)
    return reply


def _refusal(service: Service, ticket: Ticket, tool: object, params: Mapping[str, Any]) -> Reply | None:
    if not ticket.served:
        text = f"all {LIMIT_TOOL_CALLS} calls of this review are used; give your answer from what you have seen"
        return Reply("refused", CALL_LIMIT, shown_error(text))
    if len(json.dumps(params, ensure_ascii=False, default=repr).encode("utf-8", "replace")) > LIMIT_MESSAGE_BYTES:
        return Reply("refused", MESSAGE_LIMIT, shown_error(f"a call has at most {LIMIT_MESSAGE_BYTES} bytes"))
    names = [known.name for known in service.tools]
    if tool not in names:
        return Reply("refused", USAGE, shown_error(f"there is no such tool; there are {', '.join(names)}"))
    return None


def _entered(log: CallLog, ticket: Ticket, reply: Reply) -> Reply:
    log.answer(ticket, reply.result, reply.code, reply.text, runs=reply.runs, mutation=reply.mutation)
    return reply


async def _take_back(log: CallLog, ticket: Ticket, errand: Errand) -> None:
    """Kill the command, wait until its copy is put right, and enter the call as cancelled."""
    errand.cancel()
    with anyio.CancelScope(shield=True):
        try:
            reply = await asyncio.wrap_future(errand.future)
        except Exception:  # noqa: BLE001 - whatever it was, the call was cancelled and gets its record
            reply = Reply("cancelled", CANCELLED, shown_error("the call was cancelled"))
    _entered(log, ticket, reply)
