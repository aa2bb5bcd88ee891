"""The reviewer program: works down a list with the host's tools. Standard library only; no model, no network.

It gets its task as JSON on standard input, prints one event a line, and keeps a transcript in the current folder:

    {"relay": [...] or null, "environment": {...}, "prompt": [...], "review": true or false, "plan": null or {...}}
    {"type": "tools", "tools": [...]}   what the relay offered
    {"type": "result", "answer": ...}   the last line; the answer is null in a preflight

A plan, `{"calls": [[tool, arguments], ...], "answer": ..., "refused": ..., "hangs": ...}`, takes the list's place: the
contract tests play through it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import IO, Any

TRANSCRIPT = "transcript.jsonl"


class Tools:
    """The host's tools behind its relay: JSON-RPC, one message a line."""

    def __init__(self, relay: list[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(relay, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._asked = 0
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "checklist", "version": "1"},
        }
        self._ask("initialize", hello)
        self._send({"method": "notifications/initialized"})

    def listed(self) -> list[dict[str, Any]]:
        """The tools as the host declares them."""
        tools: list[dict[str, Any]] = self._ask("tools/list", {})["tools"]
        return tools

    def call(self, name: str, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
        """The JSON that a tool returned, or None where it refused or failed."""
        result = self._ask("tools/call", {"name": name, "arguments": arguments})
        return None if result.get("isError") else json.loads(result["content"][0]["text"])

    def close(self) -> None:
        """End the relay."""
        self._pipe(self._process.stdin).close()
        self._process.wait()

    def _ask(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": parameters})
        for line in self._pipe(self._process.stdout):
            message = json.loads(line)
            if message.get("id") == self._asked and "method" not in message:
                answer: dict[str, Any] = message["result"]
                return answer
        raise EOFError("the host's relay ended")

    def _send(self, message: dict[str, Any]) -> None:
        pipe = self._pipe(self._process.stdin)
        pipe.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        pipe.flush()

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        if pipe is None:
            raise EOFError("the host's relay has no pipe")
        return pipe


class Review:
    """One review: every call stands in the transcript before it is made, so that one that kills this program does."""

    def __init__(self, tools: Tools | None, transcript: IO[str]) -> None:
        self._tools = tools
        self._transcript = transcript

    def call(self, name: str, **arguments: Any) -> Any:  # noqa: ANN401 - any JSON value
        """Make one call."""
        if self._tools is None:
            return None
        print(json.dumps({"tool": name, "arguments": arguments}), file=self._transcript, flush=True)
        return self._tools.call(name, arguments)

    def by_list(self, request: dict[str, Any]) -> dict[str, Any]:
        """Read every file to its end, run every check, and say what came of it."""
        for entry in request.get("files", []):
            page = self.call("read_file", path=entry["path"]) if entry["state"] == "present" else None
            while page is not None and page["nextOffset"] is not None:
                page = self.call("read_file", path=entry["path"], offset=page["nextOffset"])
        findings = []
        for check in request.get("checks", []):
            ran = self.call("run_check", checkId=check["checkId"])
            if ran is None or ran["status"] != "passed":
                message = f"the check {check['checkId']} is not green"
                findings.append({"severity": "high", "path": "", "line": None, "message": message})
        if findings:
            return {"verdict": "rejected", "summary": "a check is not green", "findings": findings}
        return {"verdict": "blocked", "summary": "nothing speaks against it, and nobody judged it", "findings": []}

    def by_plan(self, plan: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
        """Do as the plan says."""
        if plan["refused"]:
            sys.exit("refused, as planned")
        if plan["hangs"]:
            time.sleep(3600)
        for name, arguments in plan["calls"]:
            self.call(name, **arguments)
        return plan["answer"]


def main() -> None:
    """One review, or one preflight."""
    task = json.load(sys.stdin)
    answer: dict[str, Any] | None = None
    tools = Tools(task["relay"], task["environment"]) if task["relay"] is not None else None
    say({"type": "tools", "tools": tools.listed() if tools is not None else []})
    if task["review"]:
        with open(TRANSCRIPT, "x", encoding="utf-8") as transcript:
            review = Review(tools, transcript)
            plan = task["plan"]
            answer = review.by_list(json.loads(task["prompt"][1])) if plan is None else review.by_plan(plan)
    if tools is not None:
        tools.close()
    say({"type": "result", "answer": answer})


def say(event: dict[str, Any]) -> None:
    """One event on standard output."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
