"""The three tools that a reviewer has, as the model is shown them. Constant: nothing of a project stands in here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from firsthand.canonical import JSONValue, canonical_digest
from firsthand.review.interface import ToolSchema
from firsthand.rules import LIMIT_SIDE_BYTES

PAGE_BYTES: Final = 16 * 1024
"""Most of a file that one page holds, in bytes of UTF-8. Source: the contract, Reviewer tools."""


def _text(description: str) -> JSONValue:
    return {"type": "string", "description": description}


def _schema(properties: dict[str, JSONValue], required: list[JSONValue]) -> dict[str, JSONValue]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def tool_schemas() -> tuple[ToolSchema, ...]:
    """All tools, in the order in which the server lists them; there is no other."""
    return (
        ToolSchema(
            name="read_file",
            description=(
                f"Read one page, at most {PAGE_BYTES} bytes, of a registered file as it was frozen. Answers with "
                "content, totalBytes, nextOffset (null at the end) and the sha256 of the whole file. Pass nextOffset "
                "as offset for the next page."
            ),
            input_schema=_schema(
                {
                    "path": _text("A registered path, relative, as listed in the request."),
                    "offset": {
                        "type": "integer",
                        "minimum": 0,
                        "description": "Where the page begins, in bytes: 0 or a nextOffset that was answered.",
                    },
                },
                ["path"],
            ),
        ),
        ToolSchema(
            name="run_check",
            description=(
                "Run one registered check on the unmodified files in the sandbox, and get its status, outcome, test "
                "counts and the beginning and end of its output."
            ),
            input_schema=_schema({"checkId": _text("The id of a registered check.")}, ["checkId"]),
        ),
        ToolSchema(
            name="mutate_check",
            description=(
                "See whether a check notices a fault: in a copy, replace the one occurrence of old by new in a "
                "mutation path, run the check, and put the exact bytes back. The verdict detected means that the "
                "check passed before, failed with the change, and passed after."
            ),
            input_schema=_schema(
                {
                    "checkId": _text("The id of a registered check."),
                    "path": _text("One of the registered mutation paths."),
                    "old": _text(f"Text that occurs exactly once in the file; at most {LIMIT_SIDE_BYTES} bytes."),
                    "new": _text(f"What takes its place; differs from old, at most {LIMIT_SIDE_BYTES} bytes."),
                },
                ["checkId", "path", "old", "new"],
            ),
        ),
    )


def schemas_digest(tools: Iterable[ToolSchema], output_schema: Mapping[str, JSONValue]) -> str:
    """One digest over everything that shapes what a model can call and must answer.

    Args:
        tools: in any order.
        output_schema: of the answer.

    Raises:
        StrictJSONError: a schema, as seen on a wire, holds what canonical JSON can't.
    """
    listed: list[JSONValue] = [
        {"name": tool.name, "description": tool.description, "inputSchema": dict(tool.input_schema)}
        for tool in sorted(tools, key=lambda tool: tool.name)
    ]
    return canonical_digest({"outputSchema": dict(output_schema), "tools": listed})
