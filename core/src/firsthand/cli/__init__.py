"""The command line: the only room that prints or exits."""

from firsthand.cli.app import main

__all__ = ["main"]
