"""The inspected side of an inspection: imports one plug-in, sees what that does to the process, says so once.

Run as a script by `python -I -B`; it uses the standard library alone, so that nothing but the plug-in is judged.
Standard input carries one line of JSON and then stays open: its end means that the inspecting process is gone.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading

MIB = 1024 * 1024


def main() -> None:
    """Read the request, load the plug-in, send one framed message, and end without running anything else."""
    request = json.loads(_read_line())
    # The wire is a duplicate of standard output that programs started by the plug-in do not inherit; standard output
    # itself becomes a file, so that whatever writes to descriptor 1 spoils no message and is noticed.
    wire = os.dup(1)
    printed = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
    os.dup2(printed.fileno(), 1)
    watched = os.dup(0)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    threading.Thread(target=_end_with_the_inspector, args=(watched,), daemon=True).start()
    _limit(request["memory_bytes"], request["cpu_s"])
    sys.path[:] = request["path"]
    # Taken now: the plug-in may replace what it likes in these modules.
    write, end, dumps, size = os.write, os._exit, json.dumps, os.fstat
    before = _state()
    answer = _load(request)
    effects = sorted(name for name, value in _state().items() if before.get(name) != value)
    with contextlib.suppress(Exception):  # the plug-in may have closed or replaced it, which the state shows
        sys.stdout.flush()
    if size(printed.fileno()).st_size > 0:
        effects.append("standard output (it prints)")
    payload = dumps({**answer, "effects": effects}).encode()
    message = f"firsthand-inspection {request['nonce']} {len(payload)}\n".encode() + payload
    while message:
        message = message[write(wire, message) :]
    # No exit handlers and no waiting for threads: those are the plug-in's.
    end(0)


def _read_line() -> bytes:
    line = bytearray()
    while not line.endswith(b"\n"):
        piece = os.read(0, 1)
        if not piece:
            os._exit(3)
        line += piece
    return bytes(line)


def _end_with_the_inspector(descriptor: int) -> None:
    while os.read(descriptor, 1024):
        pass
    os._exit(3)


def _limit(memory_bytes: int, cpu_s: int) -> None:
    if os.name != "posix":
        return
    import resource  # noqa: PLC0415 - POSIX only

    wanted = {
        resource.RLIMIT_DATA: memory_bytes,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: cpu_s,
        resource.RLIMIT_FSIZE: 64 * MIB,
    }
    for limit, value in wanted.items():
        _, hard = resource.getrlimit(limit)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (bound, bound))


def _state() -> dict[str, object]:
    """What an import must leave as it found it, each under the name that the report gives it."""
    umask = os.umask(0o077)
    os.umask(umask)
    state: dict[str, object] = {
        "the working directory": os.getcwd(),
        "the umask": umask,
        "the environment": dict(os.environ),
        "sys.stdout": id(sys.stdout),
        "sys.excepthook": id(sys.excepthook),
        "open": id(builtins.open),
        "__import__": id(builtins.__import__),
        "os.open": id(os.open),
        "os.kill": id(os.kill),
        "subprocess.Popen": id(subprocess.Popen),
        "subprocess.Popen.__init__": id(subprocess.Popen.__init__),
        "subprocess.run": id(subprocess.run),
    }
    for number in signal.valid_signals():
        state[f"the handler of {getattr(number, 'name', number)}"] = repr(signal.getsignal(number))
    if hasattr(signal, "getitimer"):
        state["the timer of SIGALRM"] = signal.getitimer(signal.ITIMER_REAL) != (0.0, 0.0)
    return state


def _load(request: dict[str, object]) -> dict[str, object]:
    stage = "import"
    try:
        entry_point = importlib.metadata.EntryPoint(
            name=str(request["name"]), value=str(request["value"]), group=str(request["group"])
        )
        factory = entry_point.load()
        stage = "call"
        loaded = factory()
        stage = "contract"
        members = request["members"]
        assert isinstance(members, list)  # noqa: S101 - our own request; for the type checker
        missing = [member for member in members if not hasattr(loaded, member)]
        name = str(getattr(loaded, "name", request["name"]))
    except BaseException as error:  # noqa: BLE001 - whatever it raises, SystemExit too, is the finding
        try:
            message = str(error)
        except BaseException:  # noqa: BLE001 - foreign code again
            message = "its message can't be read"
        return {"stage": stage, "error": type(error).__name__, "message": message[:2000]}
    return {"stage": "loaded", "missing": missing, "name": name[:200]}


if __name__ == "__main__":
    main()
