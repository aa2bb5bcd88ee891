"""The endpoint over plain HTTP: what it plays, what it records, what it bounds, and that it says what it is."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from typing import Any

import pytest

from firsthand_claude.scripted import ScriptedEndpoint, parse_scenario
from firsthand_claude.scripted import endpoint as endpoint_module

TOOLS = [{"name": "mcp__cm_review__read_file"}, {"name": "StructuredOutput"}]


def playing(*turns: Any, **options: Any) -> ScriptedEndpoint:
    return ScriptedEndpoint(parse_scenario(json.dumps({"name": "t", "turns": turns}).encode()), **options)


def ask(
    model: ScriptedEndpoint, results: tuple[tuple[str, str], ...] = (), *, name: str = "scripted-a", stream: bool = True
) -> tuple[int, bytes]:
    """One request for a message, with tool results; status and body."""
    blocks = [{"type": "tool_result", "tool_use_id": key, "content": text} for key, text in results]
    body = {"model": name, "stream": stream, "tools": TOOLS, "messages": [{"role": "user", "content": blocks}]}
    return send(model, "POST", "/v1/messages?beta=true", json.dumps(body))


def send(model: ScriptedEndpoint, method: str, path: str, body: str | bytes = "") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", model.port, timeout=20)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def events(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix(b"data: ")) for line in body.split(b"\n") if line.startswith(b"data: ")]


def test_a_turn_becomes_a_stream_of_events() -> None:
    with playing({"text": "Hi", "calls": [{"tool": "read_file", "arguments": {"path": "a"}}]}) as model:
        status, body = ask(model)
    assert status == 200
    assert [event["type"] for event in events(body)] == [
        "message_start",
        *["content_block_start", "content_block_delta", "content_block_stop"] * 2,
        "message_delta",
        "message_stop",
    ]
    use = events(body)[4]["content_block"]
    assert (use["name"], use["id"]) == ("mcp__cm_review__read_file", "toolu_scripted_0001")
    assert json.loads(events(body)[5]["delta"]["partial_json"]) == {"path": "a"}
    assert events(body)[7]["delta"]["stop_reason"] == "tool_use"


def test_without_stream_the_answer_is_one_object() -> None:
    with playing({"text": "Hi"}) as model:
        _, body = ask(model, stream=False)
    assert json.loads(body)["content"] == [{"type": "text", "text": "Hi"}]
    assert json.loads(body)["stop_reason"] == "end_turn"


def test_it_is_honest_about_being_scripted() -> None:
    with playing({"text": "Hi"}) as model:
        _, body = ask(model)
    start = events(body)[0]["message"]
    assert start["id"].startswith("msg_scripted_")
    assert start["model"] == "scripted-a"
    assert set(start["usage"].values()) == {0}


@pytest.mark.parametrize("name", ["claude-opus", "opus", "", "Scripted-a"])
def test_it_never_passes_for_a_model(name: str) -> None:
    with playing({"text": "Hi"}) as model:
        status, body = ask(model, name=name)
        assert status == 404
        assert b"scripted-" in body
        assert ask(model)[0] == 200


def test_arguments_come_from_earlier_results() -> None:
    arguments = {"offset": {"$from": "/1/page/0/next~1x"}, "all": [{"$from": "/1"}], "plain": {"$from": "/1", "x": 1}}
    result = '{"page": [{"next/x": 16384}]}'
    with playing({"calls": [{"tool": "read_file"}]}, {"calls": [{"tool": "other", "arguments": arguments}]}) as model:
        ask(model)
        _, body = ask(model, results=(("toolu_scripted_0001", result),))
    assert json.loads(events(body)[2]["delta"]["partial_json"]) == {
        "offset": 16384,
        "all": [result],
        "plain": {"$from": "/1", "x": 1},
    }
    assert events(body)[1]["content_block"]["name"] == "other"


@pytest.mark.parametrize("pointer", ["/2", "/1/absent", "/1/page/9", "/1/page/x", "/x", "1", 1, "/1/page/0/deeper"])
def test_a_reference_to_nowhere_is_told(pointer: object) -> None:
    turn = {"calls": [{"tool": "read_file", "arguments": {"x": {"$from": pointer}}}]}
    with playing({"calls": [{"tool": "read_file"}]}, turn) as model:
        ask(model)
        status, body = ask(model, results=(("toolu_scripted_0001", '{"page": [1]}'),))
        assert status == 400
        assert b"turn 1" in body
        assert len(model.problems) == 1


def test_turns_are_played_in_order_and_repeated_as_told() -> None:
    error = {"fault": {"kind": "status", "status": 529}, "times": 2}
    with playing(error, {"text": "a"}, {"text": "b", "times": 0}) as model:
        assert [ask(model)[0] for _ in range(5)] == [529, 529, 200, 200, 200]
        assert [exchange.turn for exchange in model.exchanges] == [0, 0, 1, 2, 2]


def test_after_the_last_turn_there_is_a_last_word() -> None:
    with playing({"text": "a"}) as model:
        ask(model)
        status, body = ask(model)
    assert status == 200
    assert b"The scenario is over." in body


@pytest.mark.parametrize(
    ("status", "kind"), [(401, b"authentication_error"), (429, b"rate_limit_error"), (599, b"api_error")]
)
def test_errors_are_worded_as_the_real_ones(status: int, kind: bytes) -> None:
    with playing({"fault": {"kind": "status", "status": status}}) as model:
        answered, body = ask(model)
    assert answered == status
    assert kind in body


def test_a_dropped_stream_ends_between_events_and_a_half_event_within_one() -> None:
    turn = {"text": "a" * 50}
    with playing({**turn, "fault": {"kind": "drop"}}, {**turn, "fault": {"kind": "half-event"}}) as model:
        dropped, half = ask(model)[1], ask(model)[1]
    assert dropped.endswith(b"\n\n")
    assert b"message_stop" not in dropped
    assert not half.endswith(b"\n\n")


def test_garbage_is_garbage() -> None:
    with playing({"fault": {"kind": "garbage"}}) as model:
        status, body = ask(model)
    assert status == 200
    assert events(body) == []


def test_silence_lasts_as_long_as_the_endpoint() -> None:
    answers: list[object] = []

    def listen(model: ScriptedEndpoint) -> None:
        try:
            answers.append(ask(model))
        except (http.client.HTTPException, OSError) as error:
            answers.append(error)

    with playing({"fault": {"kind": "silence"}}) as model:
        thread = threading.Thread(target=listen, args=(model,))
        thread.start()
        assert model.wait_for(1, 20)
        assert answers == []
    thread.join(20)
    assert isinstance(answers[0], Exception)


def test_a_delay_is_kept() -> None:
    import time  # noqa: PLC0415

    with playing({"text": "a", "delayMs": 300}) as model:
        begun = time.monotonic()
        ask(model)
        assert time.monotonic() - begun >= 0.3


def test_every_request_is_recorded_as_it_came() -> None:
    with playing({"text": "a"}) as model:
        send(model, "GET", "/elsewhere?x=1")
        ask(model)
        first, second = model.exchanges
    assert (first.method, first.path, first.status, first.turn) == ("GET", "/elsewhere?x=1", 404, -1)
    assert second.tool_names() == ["mcp__cm_review__read_file", "StructuredOutput"]
    assert second.headers["content-length"] == str(len(second.body))
    assert [exchange.path for exchange in model.messages()] == ["/v1/messages?beta=true"]


@pytest.mark.parametrize("body", ["", "[]", "{", '{"model": 5}', '{"model": "scripted-a", "messages": 7, "tools": {}}'])
def test_a_strange_body_is_no_crash(body: str) -> None:
    with playing({"text": "a", "times": 0}) as model:
        status, _ = send(model, "POST", "/v1/messages", body)
        assert status in (200, 404)
        assert ask(model)[0] == 200


def test_a_body_beyond_the_limit_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "LIMIT_BODY_BYTES", 1000)
    with playing({"text": "a"}) as model, socket.create_connection(("127.0.0.1", model.port)) as connection:
        connection.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413")
        assert model.exchanges == []


def test_there_is_an_end_to_requests_and_to_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "LIMIT_REQUESTS", 2)
    with playing({"text": "a", "times": 0}) as model:
        assert [ask(model)[0] for _ in range(3)] == [200, 200, 413]
    monkeypatch.setattr(endpoint_module, "LIMIT_RECORDED_BYTES", 300)
    with playing({"text": "a", "times": 0}) as model:
        assert ask(model, results=(("x", "y" * 400),))[0] == 200
        assert model.exchanges[0].body == b""


def test_it_listens_on_loopback_alone() -> None:
    with playing({"text": "a"}) as model:
        assert model.url.startswith("http://127.0.0.1:")
    with pytest.raises(RuntimeError):
        _ = playing({"text": "a"}).url
