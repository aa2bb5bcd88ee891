"""The relay alone, against a plain socket in the host's place."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from firsthand.review import relay

ARGV = (sys.executable, "-I", "-S", relay.__file__)


@contextmanager
def listening(folder: Path) -> Iterator[socket.socket]:
    (folder / relay.TOKEN).write_text("secret\n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(folder / relay.SOCKET))
        listener.listen(1)
        listener.settimeout(20)
        yield listener


def accepted(listener: socket.socket) -> socket.socket:
    connection, _ = listener.accept()
    connection.settimeout(20)
    assert connection.recv(7) == b"secret\n"
    connection.sendall(relay.ACCEPTED)
    return connection


def test_both_directions_are_carried_byte_for_byte_and_the_end_as_well(tmp_path: Path) -> None:
    data = os.urandom(300_000)
    with listening(tmp_path) as listener:
        process = subprocess.Popen([*ARGV, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={})
        with accepted(listener) as connection, connection.makefile("rwb") as stream:
            sender = threading.Thread(target=stream.write, args=(data[:1000],))
            sender.start()
            sender.join()
            stream.flush()
            out: list[bytes] = []
            reader = threading.Thread(target=lambda: out.append(process.communicate(data, timeout=20)[0]))
            reader.start()
            # The input's end is a half-close: what the host still sends arrives.
            assert stream.read() == data
            stream.write(data[1000:])
            stream.flush()
            connection.shutdown(socket.SHUT_RDWR)
            reader.join(20)
        assert out == [data]
        assert process.returncode == 0


def test_the_host_s_end_ends_it_though_its_input_stays_open(tmp_path: Path) -> None:
    with (
        listening(tmp_path) as listener,
        subprocess.Popen([*ARGV, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}) as process,
    ):
        accepted(listener).close()
        assert process.wait(timeout=10) == 0


@pytest.mark.parametrize("answer", [b"", b"-"])
def test_a_refusal_is_told_on_standard_error_only(tmp_path: Path, answer: bytes) -> None:
    with (
        listening(tmp_path) as listener,
        subprocess.Popen(
            [*ARGV, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={}
        ) as process,
    ):
        connection, _ = listener.accept()
        connection.sendall(answer)
        connection.close()
        out, errors = process.communicate(timeout=20)
    assert (process.returncode, out) == (1, b"")
    assert b"refused" in errors


def test_no_host_is_told_on_standard_error_only(tmp_path: Path) -> None:
    (tmp_path / relay.TOKEN).write_text("secret")
    ended = subprocess.run([*ARGV, str(tmp_path)], capture_output=True, env={}, input=b"", check=False, timeout=20)
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert b"does not answer" in ended.stderr


STRAY = """
import os, sys, runpy
real = os.chdir
def chdir(path):
    print("stray"); os.write(1, b"stray"); os.system("echo stray"); real(path)
os.chdir = chdir
sys.argv = ["relay", sys.argv[1]]
runpy.run_path(RELAY, run_name="__main__")
"""


def test_stray_output_is_never_on_the_wire(tmp_path: Path) -> None:
    script = STRAY.replace("RELAY", repr(relay.__file__))
    with listening(tmp_path) as listener:
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        with accepted(listener) as connection:
            connection.sendall(b'{"jsonrpc":"2.0"}\n')
            connection.shutdown(socket.SHUT_RDWR)
            out, errors = process.communicate(timeout=20)
    assert [json.loads(line) for line in out.splitlines()] == [{"jsonrpc": "2.0"}]
    assert errors.count(b"stray") >= 2


def test_its_start_costs_little_and_imports_no_protocol(tmp_path: Path) -> None:
    def start(argv: list[str]) -> float:
        begun = time.perf_counter()
        subprocess.run(argv, capture_output=True, env={}, input=b"", check=False, timeout=20)
        return time.perf_counter() - begun

    (tmp_path / relay.TOKEN).write_text("secret")
    bare = min(start([sys.executable, "-I", "-S", "-c", ""]) for _ in range(5))
    ours = min(start([*ARGV, str(tmp_path)]) for _ in range(5))
    # Against the interpreter's own start, so that a slow machine says the same.
    assert ours < bare + 0.1
    source = Path(relay.__file__).read_text("utf-8")
    assert "firsthand" not in source.replace("firsthand preflight", "")
    assert "mcp" not in source
