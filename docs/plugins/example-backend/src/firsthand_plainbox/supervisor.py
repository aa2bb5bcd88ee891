"""Process 1 of the sandbox. Run as a script by the system's Python; imports nothing of Firsthand.

Standard input is the guard: one byte says go, and its end means that the host is done with us, or dead. Descriptor
`status_fd` carries one JSON line to the host: how the command ended, in the kernel's own words.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import threading
from typing import Any, NoReturn

_SET_DUMPABLE, _CAPBSET_DROP = 4, 24
_HIGHEST_CAPABILITY = 63
_CAPABILITY_VERSION = 0x20080522


def main() -> NoReturn:
    """Start the command, wait for its end, report it, and end: the kernel ends all others in this namespace."""
    order = json.loads(sys.argv[1])
    os.set_inheritable(order["status_fd"], False)  # noqa: FBT003 - the standard library's signature
    # 1. The command may run under this very uid: it must not trace this process or open its descriptors.
    libc = ctypes.CDLL(None)
    libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    # 2. Process 1 gets no signal from inside that it does not handle, and Python handles this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.read(0, 1) != b"g":
        os._exit(1)
    errors_r, errors_w = os.pipe()
    child = os.fork()
    if child == 0:
        _become(order, libc, errors_w)
    os.close(errors_w)
    # 3. No moment without a guard: a host that died before this is seen as soon as the thread looks.
    threading.Thread(target=_end_with_the_host, daemon=True).start()
    failure = os.read(errors_r, 4096)
    # 4. Orphans become our children and are collected on the way.
    while (ended := os.waitpid(-1, 0))[0] != child:
        pass
    report: dict[str, Any] = {"leftovers": sum(map(_lives, os.listdir("/proc")))}
    if failure:
        report.update(json.loads(failure))
    elif os.WIFSIGNALED(ended[1]):
        report["signalled"] = os.WTERMSIG(ended[1])
    else:
        report["exited"] = os.WEXITSTATUS(ended[1])
    os.write(order["status_fd"], json.dumps(report).encode() + b"\n")
    os._exit(0)


def _become(order: dict[str, Any], libc: ctypes.CDLL, errors: int) -> NoReturn:
    """Turn this process into the command, with nothing of ours left to it."""
    stage = "set-up"
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.umask(0o022)
        for name, value in order["limits"].items():
            number = getattr(resource, name)
            hard = resource.getrlimit(number)[1]
            limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(number, (limit, limit))
        if order["uid"] is not None:
            for capability in range(_HIGHEST_CAPABILITY + 1):
                libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0)
            os.setgroups([])
            os.setresgid(order["uid"], order["uid"], order["uid"])
            os.setresuid(order["uid"], order["uid"], order["uid"])
        # The change of uid empties all sets of capabilities but the inheritable one.
        libc.capset((ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)())
        # Python ignores these two, and the command would inherit that.
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(order["cwd"])
        for descriptor in range(3, 256):
            if descriptor != errors:
                try:
                    os.close(descriptor)
                except OSError:
                    continue
        stage = "start"
        environment = {name: value for name, value in os.environ.items() if name != "PWD"}  # PWD is bwrap's addition
        os.execve(order["executable"], order["argv"], environment)  # noqa: S606 - an argv, as the host gave it
    except OSError as error:
        os.write(errors, json.dumps({"failed": stage, "why": error.strerror}).encode())
    finally:
        os._exit(127)


def _end_with_the_host() -> None:
    os.read(0, 1)
    os._exit(1)


def _lives(name: str) -> bool:
    if not name.isdecimal() or name == "1":
        return False
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


if __name__ == "__main__":
    main()
