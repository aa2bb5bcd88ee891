"""The two short shell scripts that stand between bwrap and the command.

They use only what POSIX sh has, descriptors of one digit (dash knows no others), and `env`, `prlimit` and `setpriv`.

Process 1 and the keeper end up as a copy of `cat` that nobody may read, only execute. The kernel protects a process of
an unreadable program from others of the same uid: without that, an ordinary user's command could open the guard pipe
for writing through /proc/1/fd and so live on after the host.

Arguments: `$1` of the first script is the second, so nothing is quoted twice. Standard input of process 1 is
the guard pipe, whose writing end only the host holds.
"""

from __future__ import annotations

from typing import Final

from firsthand.isolation.interface import Limits

RUN: Final = "/run/firsthand"
"""Folder inside that holds the gate's name and the go pipe, read-only."""
GATE: Final = f"{RUN}/firsthand-gate"
"""A link to the shell. A process that bears this name has not become the command yet."""
GATE_COMM: Final = "firsthand-gate"
"""What the kernel calls a process that was started by `GATE`: 14 of at most 15 characters."""
GUARD: Final = f"{RUN}/cat"
"""The unreadable copy of `cat`."""
GUARD_COMM: Final = "cat"
GO: Final = f"{RUN}/go"
READY: Final = b"firsthand-ready\n"
"""What the gate writes to standard output before anything else can."""

# Process 1. Ignoring SIGCHLD makes the kernel collect orphans, so that they can't pile up (`trap '' CHLD` has no effect
# in dash). The keeper is the subshell, started before that, and so does not inherit it; it never waits for its child:
# the host reads the status from the zombie. What a shell starts in the background has /dev/null for stdin, hence the
# copy of the guard pipe as descriptor 3, and ignores interrupts; the caller may ignore others (nohup).
# Hence `env --default-signal`.
_INIT: Final = """gate=$1; shift
exec 3<&0
(
{become} env --default-signal {gate_path} -c "$gate" {gate_name} "$@" 3<&- &
exec {guard} <&3 3<&- >/dev/null 2>&1
) &
exec env --ignore-signal=CHLD {guard} <&3 3<&- >/dev/null 2>&1
"""

# The gate. It enters the working folder, which only the dropped uid may. The go pipe gives one line, or the end of file
# when the host is gone.
_GATE: Final = f"""cd -- "$1" || exit 1
unset PWD OLDPWD
shift
printf 'firsthand-ready\\n'
read -r go <{GO} || exit 1
exec "$@" </dev/null
"""


def command_line(argv: tuple[str, ...], *, cwd: str, limits: Limits, drop_to: int | None, token: str) -> list[str]:
    """What bwrap starts as process 1: the scripts, then the command.

    Args:
        argv: the command; `argv[0]` is an absolute path inside.
        cwd: absolute working folder inside.
        limits: those that the kernel holds per process; never above what this process itself may have.
        drop_to: uid and gid that the gate and the command run as; None where bwrap already runs as an ordinary user.
        token: name of the session in the process list.
    """
    become = f"{_limit_options(limits)} --"
    if drop_to is not None:
        become += (
            f" setpriv --reuid={drop_to} --regid={drop_to} --clear-groups --bounding-set=-all --inh-caps=-all"
            " --no-new-privs --"
        )
    init = _INIT.format(become=become, gate_path=GATE, gate_name=GATE_COMM, guard=GUARD)
    return ["/usr/bin/sh", "-c", init, f"firsthand-{token}", _GATE, cwd, *argv]


def _limit_options(limits: Limits) -> str:
    import resource  # noqa: PLC0415 # POSIX only

    pairs = (
        ("nproc", resource.RLIMIT_NPROC, limits.processes),
        ("data", resource.RLIMIT_DATA, limits.memory_bytes),
        ("fsize", resource.RLIMIT_FSIZE, limits.file_bytes),
        ("core", resource.RLIMIT_CORE, 0),
    )
    words = ["prlimit"]
    for name, number, value in pairs:
        # Asking for more than the inherited hard limit would fail; less is always granted.
        hard = resource.getrlimit(number)[1]
        words.append(f"--{name}={value if hard == resource.RLIM_INFINITY else min(value, hard)}")
    return " ".join(words)
