"""The endpoint itself: a Messages API on loopback that plays a scenario and records what it was asked.

It is no model and says so: it serves only models whose name begins with `scripted-`, reports no tokens, and names
itself in every identifier and header, so evidence of a scripted review can't be taken for a model's.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

from firsthand_claude.scripted.exchange import Exchange
from firsthand_claude.scripted.references import UnresolvedError, call_id, resolve
from firsthand_claude.scripted.scenario import Scenario, Turn
from firsthand_claude.scripted.stream import error_body, events, whole_message

MODEL_PREFIX: Final = "scripted-"
LIMIT_BODY_BYTES: Final = 32 * 1024 * 1024
LIMIT_RECORDED_BYTES: Final = 64 * 1024 * 1024
LIMIT_REQUESTS: Final = 1024
_LIMIT_CONNECTIONS: Final = 32
_IDLE_S: Final = 60.0
_LAST_WORD: Final = Turn(text="The scenario is over.", times=0)


def _is_scripted(model: str) -> bool:
    return model.startswith(MODEL_PREFIX)


class ScriptedEndpoint:
    """A context manager; listens on a free port of 127.0.0.1 while it is open. Standard library only.

    At most 1024 requests are played and 64 MiB of bodies kept; beyond that the answer is 413. Bodies above 32 MiB are
    refused unread.

    Args:
        scenario: what is played; one endpoint plays it once.
        serves: which model names are answered; by default only those that begin with `scripted-`. The preflight, which
            asks no model anything, takes every name.

    Attributes:
        exchanges: every request so far, in order of arrival.
        problems: what went wrong with the scenario itself, in plain words.
    """

    def __init__(self, scenario: Scenario, *, serves: Callable[[str], bool] = _is_scripted) -> None:
        self._scenario = scenario
        self._serves = serves
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._arrived = threading.Condition(self._lock)
        self._position = self._played = self._calls = self._requests = self._kept_bytes = 0
        self.exchanges: list[Exchange] = []
        self.problems: list[str] = []
        self._server: _Server | None = None

    def __enter__(self) -> Self:
        self._server = _Server(self)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="scripted-model", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._closing.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    @property
    def port(self) -> int:
        """The port on 127.0.0.1.

        Raises:
            RuntimeError: the endpoint is not open.
        """
        if self._server is None:
            raise RuntimeError("the endpoint is not open")
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """What ANTHROPIC_BASE_URL is set to."""
        return f"http://127.0.0.1:{self.port}"

    def wait_for(self, count: int, timeout_s: float) -> bool:
        """Wait until that many requests have been taken in; whether they were within the time."""
        with self._arrived:
            return self._arrived.wait_for(lambda: len(self.exchanges) >= count, timeout_s)

    def messages(self) -> list[Exchange]:
        """The model requests among the exchanges."""
        with self._lock:
            return [exchange for exchange in self.exchanges if is_messages(exchange.method, exchange.path)]

    def take(self, request: Exchange) -> Answer:
        """Decide the answer to one request, and record both."""
        with self._arrived:
            answer = self._decide(request)
            room = self._kept_bytes + len(request.body) <= LIMIT_RECORDED_BYTES
            self._kept_bytes += len(request.body) if room else 0
            self.exchanges.append(
                Exchange(
                    at_s=request.at_s,
                    method=request.method,
                    path=request.path,
                    headers=request.headers,
                    body=request.body if room else b"",
                    status=answer.status,
                    turn=answer.turn,
                )
            )
            self._arrived.notify_all()
            return answer

    def pause(self, duration_s: float) -> None:
        """Wait, but no longer than the endpoint is open."""
        self._closing.wait(duration_s)

    def _decide(self, request: Exchange) -> Answer:
        self._requests += 1
        if self._requests > LIMIT_REQUESTS or self._kept_bytes >= LIMIT_RECORDED_BYTES:
            return Answer.error(413, "more requests than one scenario may take")
        if request.method in ("HEAD", "GET") and request.path == "/":
            return Answer(200, "text/plain", [b"" if request.method == "HEAD" else b"scripted model\n"])
        if not is_messages(request.method, request.path):
            return Answer.error(404, "only POST /v1/messages is served")
        message = request.message()
        model = message.get("model")
        if not isinstance(model, str) or not self._serves(model):
            return Answer.error(404, f"this is no model: its names begin with {MODEL_PREFIX}")
        return self._play(message, model)

    def _play(self, message: Mapping[str, Any], model: str) -> Answer:
        index, turn = self._next_turn()
        if turn.fault is not None and turn.fault.kind == "status":
            status = turn.fault.status
            return Answer.error(status, f"turn {index} answers with {status}", turn=index, delay_ms=turn.delay_ms)
        try:
            blocks = self._blocks(turn, message)
        except UnresolvedError as error:
            self.problems.append(f"turn {index}: {error}")
            return Answer.error(400, f"turn {index}: {error}", turn=index)
        whole = whole_message(self._requests, model, blocks)
        if message.get("stream") is not True:
            return Answer(200, "application/json", [json.dumps(whole).encode()], index, turn.delay_ms)
        chunks, silent = events(whole), False
        match turn.fault.kind if turn.fault is not None else "":
            case "drop":
                chunks = chunks[: max(1, len(chunks) // 2)]
            case "half-event":
                cut = max(1, len(chunks) // 2)
                chunks = [*chunks[:cut], chunks[cut][: len(chunks[cut]) // 2]]
            case "garbage":
                chunks = [b"\x00\xff not an event stream \xfe\n" * 64]
            case "silence":
                chunks, silent = [], True
            case _:
                pass
        return Answer(200, "text/event-stream", chunks, index, turn.delay_ms, silent=silent)

    def _next_turn(self) -> tuple[int, Turn]:
        if self._position >= len(self._scenario.turns):
            return -1, _LAST_WORD
        index = self._position
        turn = self._scenario.turns[index]
        self._played += 1
        if turn.times and self._played >= turn.times:
            self._position, self._played = index + 1, 0
        return index, turn

    def _blocks(self, turn: Turn, message: Mapping[str, Any]) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text else []
        for call in turn.calls:
            arguments = resolve(call.arguments, message)
            self._calls += 1
            name = _offered(call.tool, message)
            blocks.append({"type": "tool_use", "id": call_id(self._calls), "name": name, "input": arguments})
        return blocks or [{"type": "text", "text": "(says nothing)"}]


class Answer:
    """What goes back over the wire.

    Attributes:
        status, content_type: of the HTTP answer.
        chunks: the body, in the pieces that it is sent in.
        turn: index of the turn, -1 for none.
        delay_ms: before the first byte.
        silent: whether nothing at all is sent until the endpoint closes.
    """

    __slots__ = ("chunks", "content_type", "delay_ms", "silent", "status", "turn")

    def __init__(
        self,
        status: int,
        content_type: str,
        chunks: list[bytes],
        turn: int = -1,
        delay_ms: int = 0,
        *,
        silent: bool = False,
    ) -> None:
        self.status = status
        self.content_type = content_type
        self.chunks = chunks
        self.turn = turn
        self.delay_ms = delay_ms
        self.silent = silent

    @classmethod
    def error(cls, status: int, text: str, *, turn: int = -1, delay_ms: int = 0) -> Self:
        """An HTTP error."""
        return cls(status, "application/json", [error_body(status, text)], turn, delay_ms)


def is_messages(method: str, path: str) -> bool:
    """Whether this asks the model for a message."""
    return method == "POST" and path.split("?", 1)[0] == "/v1/messages"


def _offered(tool: str, message: Mapping[str, Any]) -> str:
    tools = message.get("tools")
    names = [entry.get("name") for entry in tools if isinstance(entry, dict)] if isinstance(tools, list) else []
    if tool in names:
        return tool
    ends = [name for name in names if isinstance(name, str) and name.endswith(f"__{tool}")]
    return ends[0] if len(ends) == 1 else tool


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    # A name look-up at start would be traffic, and may hang.
    address_family = socket.AF_INET

    def __init__(self, endpoint: ScriptedEndpoint) -> None:
        self.endpoint = endpoint
        self.free = threading.BoundedSemaphore(_LIMIT_CONNECTIONS)
        super().__init__(("127.0.0.1", 0), _Connection)

    def server_bind(self) -> None:
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - socketserver's own types
        if not self.free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the same
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the same
        """A client that hangs up is no news; the tests see every request that arrived whole."""


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "firsthand-scripted-model"
    sys_version = ""
    timeout = _IDLE_S
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - the base class names it so
        """Nothing is printed: only the command line prints."""

    def do_POST(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        arrived_s = time.monotonic()
        endpoint = self.server.endpoint
        length = self.headers.get("Content-Length", "0")
        self.close_connection = True
        if not length.isdecimal() or int(length) > LIMIT_BODY_BYTES or "Transfer-Encoding" in self.headers:
            self._send(Answer.error(413, f"a body of at most {LIMIT_BODY_BYTES} bytes, its length declared"))
            return
        body = self.rfile.read(int(length))
        if len(body) != int(length):
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = endpoint.take(Exchange(arrived_s, self.command, self.path, headers, body, 0, -1))
        if answer.silent:
            endpoint.pause(_IDLE_S * 60)
            return
        if answer.delay_ms:
            endpoint.pause(answer.delay_ms / 1000)
        self._send(answer)

    def _send(self, answer: Answer) -> None:
        # The length of a stream is not declared: its end, planned or not, is the end of the connection.
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Connection", "close")
        self.send_header("Request-Id", "req_scripted")
        if answer.content_type != "text/event-stream":
            self.send_header("Content-Length", str(sum(map(len, answer.chunks))))
        self.end_headers()
        self.wfile.write(b"".join(answer.chunks))
