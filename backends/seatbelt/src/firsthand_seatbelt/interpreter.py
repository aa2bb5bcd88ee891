"""The Python that runs inside the sandbox before the command does: the one that runs Firsthand itself.

`inside.py` needs no more of it than the interpreter and the standard library, so a virtual environment is resolved to
the installation below it, which the sandbox shows read-only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from firsthand.isolation.interface import IsolationError
from firsthand_seatbelt.paths import contains, kernel_spelling, links_on_the_way

SYSTEM_RUNTIME: Final = (
    "/usr/lib",
    "/System/Library",
    "/System/Cryptexes",
    "/System/Volumes/Preboot/Cryptexes",
    "/Library/Apple",
)
"""Where the system's own libraries are; the profile shows these to every command."""

_SHARED_PREFIXES: Final = ("/", "/usr", "/usr/local", "/opt", "/opt/homebrew", "/opt/local", "/Library", "/Users")
_WHAT: Final = "the Python installation that runs Firsthand"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python and what must be readable for it to start."""

    executable: str
    roots: tuple[str, ...]
    links: tuple[str, ...]


def this_interpreter(images: Iterable[str], *, home: str) -> Interpreter:
    """The Python of this process.

    Args:
        images: what the dynamic loader has loaded into this process; a Python that was built against a library of a
            package manager can't start without it.
        home: the user's home; as a prefix it would show everything in it.

    Raises:
        IsolationError: the installation shares its prefix with other things, or its path can't be expressed.
    """
    given = str(getattr(sys, "_base_executable", "") or sys.executable)
    executable = kernel_spelling(given, what=_WHAT)
    prefix = kernel_spelling(sys.base_prefix, what=_WHAT)
    if prefix in {*_SHARED_PREFIXES, os.path.realpath(home)}:
        raise IsolationError(
            "the Python that runs Firsthand is installed straight into a folder that holds other things, which every"
            " command could then read",
            where=prefix,
            next_step="run Firsthand with a Python in a folder of its own (python.org, Homebrew, pyenv, uv)",
        )
    roots = [prefix]
    links = [*links_on_the_way(given), *links_on_the_way(sys.base_prefix)]
    if not contains(prefix, executable):
        roots.append(executable)
    for image in images:
        if any(contains(folder, image) for folder in (*SYSTEM_RUNTIME, sys.prefix, sys.base_prefix)):
            continue
        if not os.path.exists(image):  # In the system's shared cache, not on disk.
            continue
        spelled = kernel_spelling(image, what="a library that Python was built against")
        # Extension modules of packages are loaded too, but `inside.py` imports none.
        if image.endswith(".so") or any(contains(root, spelled) for root in (*roots, *SYSTEM_RUNTIME)):
            continue
        roots.append(spelled)
        links += links_on_the_way(image)
    return Interpreter(executable=executable, roots=tuple(dict.fromkeys(roots)), links=tuple(dict.fromkeys(links)))
