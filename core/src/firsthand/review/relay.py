"""The relay: carries a reviewer program's standard input and output to the host's socket, and nothing else.

Run as `python -I -S relay.py FOLDER`, where FOLDER holds the socket and a file with the token. It imports the standard
library only, so that it starts in tens of milliseconds, reads no environment variable, and knows no protocol: the host
does all that counts. It ends when either side ends; the other side's rest is delivered first.
"""

import contextlib
import os
import socket
import sys
import threading

SOCKET = "socket"
TOKEN = "token"  # noqa: S105 - the name of the file
ACCEPTED = b"+"

_CHUNK = 64 * 1024


def main(folder: str) -> int:
    """Relay until one side ends; 0, or 1 when the host refused the connection."""
    # 1. The wire is a private duplicate: whatever else prints goes to standard error.
    wire_in, wire_out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    # 2. A relative name: the folder may lie deeper than the address of a socket can say.
    os.chdir(folder)
    with open(TOKEN, "rb") as file:
        token = file.read(4096).strip()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(SOCKET)
    except OSError as error:
        print(f"relay: the host does not answer: {error}", file=sys.stderr)  # noqa: T201 - its only way to say so
        return 1
    answer = b""
    # A refusal may close the connection before all of this.
    with contextlib.suppress(OSError):
        connection.sendall(token + b"\n")
        answer = connection.recv(1)
    if answer != ACCEPTED:
        print("relay: the host refused the connection", file=sys.stderr)  # noqa: T201
        return 1
    # 3. One thread for each direction; the process ends with the host's.
    threading.Thread(target=_outward, args=(wire_in, connection), daemon=True).start()
    _inward(connection, wire_out)
    return 0


def _outward(source: int, connection: socket.socket) -> None:
    try:
        while chunk := os.read(source, _CHUNK):
            connection.sendall(chunk)
    except OSError:
        pass
    # The end of the input, not of the connection: answers on their way still arrive.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_WR)


def _inward(connection: socket.socket, target: int) -> None:
    try:
        while chunk := connection.recv(_CHUNK):
            left = memoryview(chunk)
            while left:
                left = left[os.write(target, left) :]
    except OSError:
        pass


if __name__ == "__main__":
    # Without waiting for the other thread: it may be reading an input that never ends.
    sys.stdout.flush()
    sys.stderr.flush()
    status = main(sys.argv[1])
    sys.stderr.flush()
    os._exit(status)
