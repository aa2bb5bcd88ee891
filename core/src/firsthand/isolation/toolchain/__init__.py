"""Toolchains: which folders a command needs to see, found without executing anything of the project."""

from firsthand.isolation.toolchain.closure import Closure, Toolchain, ToolchainError, resolve
from firsthand.isolation.toolchain.content import RootDigests

__all__ = ["Closure", "RootDigests", "Toolchain", "ToolchainError", "resolve"]
