"""Firsthand: evidence that a host saw with its own eyes.

The rooms of this package, bottom up; each imports only from rooms before it, and a test holds that:
errors, canonical, records, rules, files, residues, definition, snapshot, isolation, checks, mutation; beside them
evidence, ledger and report; plugins; engine composes, cli speaks.
"""

__version__ = "0.1.0"
