"""The interpreter that probes run under: the one that runs the host, without its site packages."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that needs nothing but its own installation.

    Attributes:
        path: absolute, resolved.
        roots: what must be readable for it beyond the system's own runtime.
    """

    path: str
    roots: tuple[Path, ...]

    @property
    def command(self) -> tuple[str, ...]:
        """The beginning of its argv: isolated, without site packages, without writing bytecode."""
        return (self.path, "-I", "-S", "-B")


def host_interpreter() -> Interpreter:
    """The base installation behind `sys.executable`, out of any virtual environment."""
    base: str = getattr(sys, "_base_executable", None) or sys.executable
    prefix = Path(os.path.realpath(sys.base_prefix))
    in_system = prefix == Path("/usr") or Path("/usr") in prefix.parents
    return Interpreter(os.path.realpath(base), () if in_system else (prefix,))
