"""The published list of what counts as a credential by its name. Contents are never scanned.

Names are compared without regard to case. Source: the contract, Run definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

CREDENTIAL_FOLDERS: Final[tuple[str, ...]] = (
    ".1password",
    ".anthropic",
    ".aws",
    ".azure",
    ".bluemix",
    ".claude",
    ".codex",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/op",
    ".config/rclone",
    ".docker",
    ".gcloud",
    ".gemini",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".oci",
    ".password-store",
    ".ssh",
    ".terraform.d",
    "library/keychains",
)
"""Folders, wherever they lie: nothing inside may be registered, and no toolchain root may hold one."""

CREDENTIAL_FILES: Final[tuple[str, ...]] = (
    ".boto",
    ".claude.json",
    ".dockercfg",
    ".env",
    ".git-credentials",
    ".htpasswd",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".s3cfg",
    ".vault-token",
    ".yarnrc.yml",
    "_netrc",
    "application_default_credentials.json",
    "credentials.json",
    "credentials.toml",
    "id_dsa",
    "id_ecdsa",
    "id_ecdsa_sk",
    "id_ed25519",
    "id_ed25519_sk",
    "id_rsa",
)
"""Files, in whatever folder. A toolchain root may not hold one at its top."""

CREDENTIAL_PATTERNS: Final[tuple[str, ...]] = (
    ".env.*",
    "*.jks",
    "*.kdbx",
    "*.key",
    "*.keystore",
    "*.p12",
    "*.pem",
    "*.pfx",
    "*.ppk",
    "client_secret*.json",
    "service-account*.json",
)
"""File names by pattern, in whatever folder; only for what is registered, not inside toolchain roots."""

CREDENTIAL_EXCEPTIONS: Final[tuple[str, ...]] = (
    ".env.defaults",
    ".env.dist",
    ".env.example",
    ".env.sample",
    ".env.template",
)
"""File names that a pattern takes in but that by custom hold no secret."""


def credential_folder(folders: Sequence[str]) -> str | None:
    """The entry of the list that one of these nested folders matches, or None.

    Args:
        folders: names from the outside in, as they are spelled.
    """
    names = [name.casefold() for name in folders]
    for entry in CREDENTIAL_FOLDERS:
        wanted = entry.split("/")
        if any(names[at : at + len(wanted)] == wanted for at in range(len(names) - len(wanted) + 1)):
            return entry
    return None


def credential_file(name: str, *, patterns: bool = True) -> str | None:
    """The entry or pattern of the list that a file's name matches, or None.

    Args:
        name: the last component.
        patterns: whether the patterns count, or only the exact names.
    """
    folded = name.casefold()
    if folded in CREDENTIAL_FILES:
        return folded
    if not patterns or folded in CREDENTIAL_EXCEPTIONS:
        return None
    return next((pattern for pattern in CREDENTIAL_PATTERNS if fnmatchcase(folded, pattern)), None)
