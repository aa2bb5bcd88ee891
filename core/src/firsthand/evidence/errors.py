"""What goes wrong with evidence and with keys."""

from __future__ import annotations

from firsthand.errors import FirsthandError


class EvidenceError(FirsthandError):
    """Evidence that can't be sealed, stored or believed."""

    default_code = "evidence_invalid"


class KeyFileError(FirsthandError):
    """A key file is missing, unsafe, of another type, or not trusted."""

    default_code = "key_invalid"
