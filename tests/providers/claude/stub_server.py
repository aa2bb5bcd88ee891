"""A tool server on stdio for tests of the provider alone: argv is MODE LOG; each start adds a line to LOG.

Modes: `answer` echoes what it was called with; `hang` never answers; `die` ends in the middle of a call.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

MODE, LOG, TOOLS = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])


def result_of(method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """What an MCP server answers."""
    if method == "initialize":
        return {
            "protocolVersion": parameters["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "cm_review", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        if MODE == "die":
            os._exit(7)
        text = json.dumps({"name": parameters["name"], "arguments": parameters["arguments"]})
        return {"content": [{"type": "text", "text": text}]}
    return {}


with open(LOG, "a") as log:
    print(json.dumps(dict(os.environ)), file=log, flush=True)
if MODE == "hang":
    time.sleep(600)
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        answer = {
            "jsonrpc": "2.0",
            "id": message["id"],
            "result": result_of(message["method"], message.get("params", {})),
        }
        print(json.dumps(answer), flush=True)  # noqa: T201 - the wire
