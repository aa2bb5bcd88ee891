"""The public keys that a command trusts: those that it is given, and those of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from firsthand.errors import StateError
from firsthand.evidence.keyfiles import load_public_key, trusted_keys
from firsthand.evidence.keys import PublicKey

TRUSTED: Final = "trusted-keys"
"""Folder of the state directory with the keys that this machine trusts."""


def keys_at_hand(files: list[Path], state: Path | None) -> tuple[PublicKey, ...]:
    """The keys in the files, then those in the state directory.

    Raises:
        KeyFileError: a file can't be used.
        StateError: a state directory was named and can't be used; without a name no further keys are trusted.
    """
    from firsthand.residues import StateDirectory  # noqa: PLC0415 # only to find the folder of trusted keys

    given = tuple(load_public_key(file) for file in files)
    try:
        folder = StateDirectory.open(state).path / TRUSTED
    except StateError:
        if state is not None:
            raise
        return given
    return (*given, *trusted_keys(folder)) if folder.is_dir() else given
