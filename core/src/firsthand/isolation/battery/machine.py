"""What a battery's result depends on besides the backend: this boot of this kernel, and what it allows this process."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator

from firsthand.canonical import JSONValue

_KERNEL_LIMITS = (
    "user/max_user_namespaces",
    "user/max_mnt_namespaces",
    "user/max_net_namespaces",
    "user/max_pid_namespaces",
    "kernel/unprivileged_userns_clone",
    "kernel/apparmor_restrict_unprivileged_userns",
    "kernel/apparmor_restrict_unprivileged_unconfined",
    "kernel/io_uring_disabled",
    "kernel/unprivileged_bpf_disabled",
    "kernel/perf_event_paranoid",
    "kernel/yama/ptrace_scope",
    "kernel/seccomp/actions_avail",
    "dev/tty/legacy_tiocsti",
    "fs/protected_hardlinks",
    "net/ipv6/conf/all/disable_ipv6",
)
_OWN_STATUS = ("CapPrm", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")
_NAMESPACES = ("user", "mnt", "net", "pid", "ipc")


def boot_id() -> str:
    """What tells this boot from every other; empty where the system has no such thing."""
    if sys.platform == "darwin":
        return _sysctl("kern.bootsessionuuid")
    return _read("/proc/sys/kernel/random/boot_id")


def kernel() -> str:
    """Release and build of the running kernel."""
    found = platform.uname()
    return f"{found.system} {found.release} {found.version}"


def circumstances() -> dict[str, JSONValue]:
    """Everything else that could turn a pass into a failure without a new boot: part of a cached report's key.

    Limits of the kernel, this process's capabilities, its namespaces (a container on the same kernel has the same boot
    id), its resource limits and its security label.
    """
    return {
        "limits": {name: _read(f"/proc/sys/{name}") for name in _KERNEL_LIMITS},
        "status": dict(_own_status()),
        "namespaces": {name: _link(f"/proc/self/ns/{name}") for name in _NAMESPACES},
        "resources": _read("/proc/self/limits"),
        "label": _read("/proc/self/attr/current"),
        "machine": platform.machine(),
    }


def _own_status() -> Iterator[tuple[str, JSONValue]]:
    for line in _read("/proc/self/status").splitlines():
        name, _, value = line.partition(":")
        if name in _OWN_STATUS:
            yield name, value.strip()


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="backslashreplace") as file:
            return file.read(8192).strip().rstrip("\0")
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _sysctl(name: str) -> str:
    try:
        done = subprocess.run(
            ["/usr/sbin/sysctl", "-n", name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env={},
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("ascii", "replace").strip()
