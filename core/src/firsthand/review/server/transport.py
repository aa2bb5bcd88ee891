"""Messages over a connection: one JSON text a line, split at LF bytes only, bounded while they are read."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

LIMIT_LINE_BYTES: Final = 8 * 1024 * 1024
"""A longer line ends the connection; a call's own limit is far below and is answered."""

_CHUNK_BYTES: Final = 64 * 1024


class LineTooLongError(Exception):
    """The other side sent a line that no message needs."""


async def serve(server: Server[Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one connection until its input ends; then whatever is under way is cancelled.

    Raises:
        LineTooLongError: the connection is given up.
    """
    incoming_send, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_receive = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_read, reader, incoming_send)
            group.start_soon(_write, writer, outgoing_receive)
            await server.run(incoming, outgoing, server.create_initialization_options())
            group.cancel_scope.cancel()
    except BaseExceptionGroup as errors:
        found = errors.subgroup(LineTooLongError)
        if found is not None:
            raise LineTooLongError from errors
        raise
    finally:
        for stream in (incoming_send, incoming, outgoing, outgoing_receive):
            stream.close()


async def _read(reader: asyncio.StreamReader, target: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    async with target:
        partial = bytearray()
        while chunk := await reader.read(_CHUNK_BYTES):
            *whole, rest = chunk.split(b"\n")
            for part in whole:
                line = bytes(partial) + part
                partial.clear()
                await target.send(_message(line))
            partial += rest
            if len(partial) > LIMIT_LINE_BYTES:
                raise LineTooLongError


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except (ValidationError, ValueError) as error:
        return error


async def _write(writer: asyncio.StreamWriter, source: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with source:
        async for message in source:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                writer.write(text.encode() + b"\n")
                await writer.drain()
            except OSError:
                # Nobody is there any more; the end of the input tells the rest.
                continue
