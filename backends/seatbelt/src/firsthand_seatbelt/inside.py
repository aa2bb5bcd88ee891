"""The first program inside the sandbox: sets limits, says that it is ready, then becomes the command or writes a file.

Run as `python -I -S -c <this text> ...`, never imported by the host, so it uses the standard library alone and nothing
of the copy. It tells the host what happened on a descriptor that the command never gets: sandbox-exec's own exit
statuses 65 and 71 are also ordinary exit statuses, and a missing word here is what tells them apart.

Words, one line each: `ready` (the profile holds, limits are set), `done` (the file is written), `stopped STEP ERRNO`.
A program that was executed says nothing more: the descriptor closes.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from typing import Final, NoReturn

LIMIT_NAMES: Final = ("RLIMIT_NPROC", "RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_CORE")
"""The limits that are set, in the order in which the host passes their values."""

FAILED: Final = 127
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def main(arguments: list[str]) -> NoReturn:
    """Read `name status_fd control_fd limits verb copy ...` and act; ends the process in any case."""
    _, status_text, control_text, limits, verb, copy, *rest = arguments
    status, control = int(status_text), int(control_text)
    step = "limits"
    try:
        os.set_inheritable(status, False)  # noqa: FBT003 # the standard library's signature
        set_limits(limits)
        step = "release"
        os.write(status, b"ready\n")
        if os.read(control, 1) != b"g":
            os._exit(FAILED)  # The host is gone or thought better of it.
        os.close(control)
        if verb == "run":
            cwd, executable, *argv = rest
            step = "cwd"
            os.fchdir(open_folder(copy, cwd))
            step = "exec"
            # Python ignores these two; a command that inherited that would not notice a closed pipe or a full file.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            os.execv(executable, argv)  # noqa: S606 # the point
        step = "write"
        path, mode, size = rest
        write(copy, path, int(mode), int(size))
        os.write(status, b"done\n")
        os._exit(0)
    except OSError as error:
        os.write(status, f"stopped {step} {error.errno or 0}\n".encode())
    os._exit(FAILED)


def set_limits(values: str) -> None:
    """Lower the limits; a value above what this process may have becomes what it may have.

    Args:
        values: numbers for `LIMIT_NAMES`, separated by commas; `-` leaves one alone.
    """
    for name, value in zip(LIMIT_NAMES, values.split(","), strict=True):
        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        if value != "-":
            limit = int(value) if hard == resource.RLIM_INFINITY else min(int(value), hard)
            resource.setrlimit(number, (limit, limit))


def open_folder(root: str, path: str) -> int:
    """A descriptor of a folder below `root`, opened component by component through no link."""
    folder = os.open(root, _FOLDER)
    for part in path.split("/"):
        if part not in {"", "."}:
            if part == "..":
                raise PermissionError(1, "a path may not go up")
            folder = os.open(part, _FOLDER, dir_fd=folder)
    return folder


def write(root: str, path: str, mode: int, size: int) -> None:
    """Replace one file with `size` bytes of standard input: a fresh inode, renamed over the old name.

    A name that is anything but a regular file, or nothing, is refused: a link there is neither followed nor replaced.
    """
    above, _, name = path.rpartition("/")
    folder = open_folder(root, above)
    try:
        if (os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode & 0o170000) != 0o100000:
            raise PermissionError(1, "not a regular file")
    except FileNotFoundError:
        pass
    fresh = f".firsthand-{os.getpid()}"
    out = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        left = size
        while left > 0:
            chunk = os.read(0, min(left, 1 << 20))
            if not chunk:
                raise OSError(5, "the content ended early")  # noqa: TRY301 # cleaned up like any other failure
            left -= len(chunk)
            while chunk:
                chunk = chunk[os.write(out, chunk) :]
        os.fchmod(out, mode)
        os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(fresh, dir_fd=folder)
        raise


if __name__ == "__main__":
    main(sys.argv[1:])
