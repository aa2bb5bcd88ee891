"""The environment that every command gets, built from empty, the same under every backend."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def fixed_environment(
    *, path: Iterable[str], home: str, tmpdir: str, user: str, added: Mapping[str, str]
) -> dict[str, str]:
    """The variables of one command, in a fixed order.

    Args:
        path: folders with the toolchains' programs; `/usr/bin:/bin` follows them.
        home: HOME as seen inside.
        tmpdir: TMPDIR as seen inside.
        user: account name as seen inside.
        added: a runner's reporting variables; they can't replace a fixed one.

    Raises:
        ValueError: `added` names a fixed variable.

    Source: the contract, Isolation.
    """
    fixed = {
        "PATH": ":".join((*path, "/usr/bin", "/bin")),
        "HOME": home,
        "TMPDIR": tmpdir,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "USER": user,
        "LOGNAME": user,
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if taken := sorted(fixed.keys() & added.keys()):
        raise ValueError(f"fixed variables can't be replaced: {', '.join(taken)}")
    return {**fixed, **added}
