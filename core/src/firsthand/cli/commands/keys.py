"""`firsthand keys`."""

from __future__ import annotations

import sys
from pathlib import Path

from firsthand.canonical import JSONValue
from firsthand.cli.output import diagnostics, lines, print_json
from firsthand.cli.trust import TRUSTED
from firsthand.evidence.keyfiles import load_public_key, new_key, show_key, trust_key
from firsthand.evidence.keys import PublicKey
from firsthand.residues import StateDirectory


def new(file: Path, *, as_json: bool) -> None:
    """Make a key and show its public half."""
    _show(new_key(file), as_json=as_json, file=file)


def show(file: Path, *, as_json: bool) -> None:
    """Show the public half of a key."""
    _show(show_key(file), as_json=as_json)


def trust(file: Path, state: Path | None, *, as_json: bool) -> None:
    """Put a public key among the trusted ones of this machine."""
    folder = StateDirectory.open(state).path / TRUSTED
    key = load_public_key(file)
    place = trust_key(folder, key)
    _show(key, as_json=as_json, file=place)


def _show(key: PublicKey, *, as_json: bool, file: Path | None = None) -> None:
    if as_json:
        answer: dict[str, JSONValue] = {"keyId": key.key_id, "publicKey": key.pem}
        if file is not None:
            answer["file"] = str(file)
        print_json(answer)
        return
    # Standard output carries the key alone, so that it can go straight into a file.
    sys.stdout.write(key.pem)
    console = diagnostics()
    console.print(lines(f"key id: {key.key_id}"))
    if file is not None:
        console.print(lines(f"file: {file}"))
