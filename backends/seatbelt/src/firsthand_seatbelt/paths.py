"""Paths as the kernel spells them, and the refusal of those that a Seatbelt rule can't name.

Seatbelt compares the spelling that the kernel resolved: `/private/tmp/x` for `/tmp/x`, the case and the Unicode form
that the folder was made with. A rule in any other spelling silently never matches.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from firsthand.isolation.interface import IsolationError

LONGEST_PATH_BYTES: Final = 1023
"""macOS's PATH_MAX without its NUL; the profile compiler's own limit for a string lies just above it."""

LINKS_LIMIT: Final = 40
"""Links followed on one path before it is called a loop, as generous as the kernel's own limit."""

_BUFFER_BYTES: Final = 1024
_REFUSED_NEXT: Final = "move or rename it, or name another path, so that every component is plain ASCII and short"


def kernel_spelling(path: str | os.PathLike[str], *, what: str) -> str:
    """The one spelling of an existing path that Seatbelt rules match.

    Doubled slashes, `/./` and trailing slashes are folded and every link is resolved.

    Args:
        path: absolute; must exist.
        what: what the path is, for the message ("a toolchain root").

    Raises:
        IsolationError: the path is relative, has a `..` component, does not exist, or `refuse_inexpressible` refuses
            its resolved spelling.
    """
    given = os.fspath(path)
    if not given.startswith("/"):
        raise _refusal(given, what, "it is not absolute")
    if ".." in given.split("/"):
        raise _refusal(given, what, "it has a `..` component")
    refuse_inexpressible(given, what=what)
    try:
        spelled = _spelled_by_kernel(str(Path(given).resolve(strict=True)))
    except (OSError, RuntimeError) as error:
        raise _refusal(given, what, f"it can't be resolved ({error})") from error
    refuse_inexpressible(spelled, what=what)
    return spelled


def refuse_inexpressible(path: str, *, what: str) -> None:
    """Refuse what can't be trusted to reach the kernel unchanged as a profile parameter.

    A double quote, a backslash and parentheses are fine: a parameter's value is never parsed. Non-ASCII text is
    refused until a Mac has shown that the profile compiler hands it on byte for byte: a shortened path would be a
    wider rule.

    Raises:
        IsolationError: NUL or another control character, non-ASCII text, or more than `LONGEST_PATH_BYTES` bytes.
    """
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in path):
        raise _refusal(path, what, "it holds a control character")
    if not path.isascii():
        raise _refusal(path, what, "it is not plain ASCII")
    if len(path) > LONGEST_PATH_BYTES:
        raise _refusal(path, what, f"it is {len(path)} bytes long, at most {LONGEST_PATH_BYTES} are possible")


def ancestors(path: str) -> tuple[str, ...]:
    """The folders above a path, nearest the root first, without `/` itself."""
    parts = path.split("/")[1:-1]
    return tuple("/" + "/".join(parts[: count + 1]) for count in range(len(parts)))


def links_on_the_way(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Every symbolic link that resolving this path passes, each with its parent resolved.

    Returns:
        Absolute paths in the order in which they are passed; empty when the path is free of links. A dangling link
        ends the walk after itself.

    Raises:
        IsolationError: more than `LINKS_LIMIT` links: a loop.
    """
    pending = [part for part in os.fspath(path).split("/") if part not in {"", "."}]
    found: list[str] = []
    here = "/"
    while pending:
        part = pending.pop(0)
        if part == "..":
            here = str(Path(here).parent)
            continue
        step = str(Path(here) / part)
        try:
            target = os.readlink(step)
        except OSError:
            here = step
            continue
        found.append(step)
        if len(found) > LINKS_LIMIT:
            raise _refusal(os.fspath(path), "the path", "its links form a loop")
        pending = [piece for piece in target.split("/") if piece not in {"", "."}] + pending
        if target.startswith("/"):
            here = "/"
    return tuple(found)


def contains(outer: str, inner: str) -> bool:
    """Whether `inner` is `outer` or lies below it, component by component."""
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def _spelled_by_kernel(resolved: str) -> str:
    """Ask macOS itself: on a volume that folds case, `resolve` keeps the case that it was given."""
    import fcntl  # noqa: PLC0415 # POSIX only

    command: int | None = getattr(fcntl, "F_GETPATH", None)
    if command is None:
        return resolved
    descriptor = os.open(resolved, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        raw = fcntl.fcntl(descriptor, command, bytes(_BUFFER_BYTES))
    finally:
        os.close(descriptor)
    return os.fsdecode(bytes(raw).split(b"\0", 1)[0])


def _refusal(path: str, what: str, reason: str) -> IsolationError:
    shown = path if len(path) <= 200 else path[:200] + "..."
    return IsolationError(
        f"{what} can't be confined by Seatbelt: {reason}", where=ascii(shown), next_step=_REFUSED_NEXT
    )
