"""Key files on disk: made privately, read with suspicion, trusted by being put into one folder."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from firsthand.evidence.errors import KeyFileError
from firsthand.evidence.keys import (
    PRIVATE_MARK,
    PublicKey,
    SigningKey,
    generate_pem,
    parse_public_key,
    parse_signing_key,
)
from firsthand.evidence.storing import write_new_private

_LIMIT_BYTES: Final = 16 * 1024
_OPEN_FLAGS: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# Windows has neither owners nor permission bits in this form; there the user's profile folder keeps keys private.
_HAS_OWNERS: Final = hasattr(os, "geteuid")


def new_key(path: Path, *, source: Path | None = None) -> PublicKey:
    """Make a private key file (mode 0600, never over an existing file) and return its public half.

    Args:
        path: where the key goes; its folder exists.
        source: the tree under verification, if known; a key inside it is refused.

    Raises:
        KeyFileError: the path exists, lies inside the source, or can't be written.
    """
    _refuse_inside(path, source)
    pem = generate_pem()
    try:
        write_new_private(path, pem)
    except FileExistsError as error:
        raise KeyFileError(
            "something is there already; a key is never written over",
            where=str(path),
            next_step="choose another name, or move the old key away first",
        ) from error
    except OSError as error:
        raise _unusable(path, error) from error
    return parse_signing_key(pem, str(path)).public


def load_signing_key(path: Path, *, source: Path | None = None) -> SigningKey:
    """Read a private key file.

    Args:
        path: a regular file with one link, owned by this user, readable by nobody else (0600 or 0400).
        source: the tree under verification, if known; a key inside it is refused.

    Raises:
        KeyFileError: the file is not as said above, or holds anything but one Ed25519 key.
    """
    _refuse_inside(path, source)
    return parse_signing_key(_read(path, secret=True), str(path))


def load_public_key(path: Path) -> PublicKey:
    """Read a public key that was named on the command line.

    A symbolic link is followed: mounted configuration often is one, and naming the file is the act of trust.

    Raises:
        KeyFileError: no regular file, longer than 16 KiB, or anything but one Ed25519 public key.
    """
    try:
        resolved = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise _unusable(path, error) from error
    return parse_public_key(_read(resolved, secret=False), str(path))


def show_key(path: Path) -> PublicKey:
    """The public half of a key file, private or public; its id is recomputed.

    Raises:
        KeyFileError: as `load_signing_key` or `load_public_key`, whichever the file is.
    """
    if PRIVATE_MARK in _read_any(path):
        return load_signing_key(path).public
    return load_public_key(path)


def trust_key(folder: Path, key: PublicKey) -> Path:
    """Put a public key into the folder of trusted keys and return its file, `<key id>.pem`.

    The folder is made (0700) when absent. A key that is there already stays as it is.

    Raises:
        KeyFileError: the folder is a link, another user's, or writable by others.
    """
    with suppress(FileExistsError):
        try:
            folder.mkdir(mode=0o700, parents=True)
        except FileExistsError:
            raise
        except OSError as error:
            raise _unusable(folder, error) from error
    _check_folder(folder)
    path = folder / f"{key.key_id}.pem"
    try:
        write_new_private(path, key.pem.encode("ascii"))
    except FileExistsError:
        _trusted_key(path)
    except OSError as error:
        raise _unusable(path, error) from error
    return path


def trusted_keys(folder: Path) -> tuple[PublicKey, ...]:
    """All keys in the folder of trusted keys, sorted by id; none when the folder does not exist.

    Raises:
        KeyFileError: the folder is a link, another user's or writable by others, or holds anything but public keys
            under their own ids: one doubtful file makes the whole folder doubtful.
    """
    if not os.path.lexists(folder):
        return ()
    _check_folder(folder)
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise _unusable(folder, error) from error
    return tuple(_trusted_key(folder / name) for name in names)


def _trusted_key(path: Path) -> PublicKey:
    key = parse_public_key(_read(path, secret=False), str(path))
    if path.name != f"{key.key_id}.pem":
        raise KeyFileError(
            f"the key in this file has the id {key.key_id}, the file's name says otherwise",
            where=str(path),
            next_step="remove the file, then add the key with `firsthand keys trust`",
        )
    return key


def _read(path: Path, *, secret: bool) -> bytes:
    """The content of a regular file, checked on the open descriptor so that nothing can be swapped in between."""
    try:
        if path.is_symlink():
            raise _unsafe(path, "a symbolic link")
        # O_NONBLOCK: opening a FIFO must not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | _OPEN_FLAGS | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _unsafe(path, "not a regular file")
        if secret:
            _check_private(path, status)
        # One byte more than allowed tells a longer file; a read of a regular file this short is never split.
        content = os.read(descriptor, _LIMIT_BYTES + 1)
    except OSError as error:
        raise _unusable(path, error) from error
    finally:
        os.close(descriptor)
    if len(content) > _LIMIT_BYTES:
        raise _unsafe(path, f"longer than {_LIMIT_BYTES} bytes")
    return content


def _read_any(path: Path) -> bytes:
    try:
        return _read(path.resolve(strict=True), secret=False)
    except (OSError, RuntimeError) as error:
        raise _unusable(path, error) from error


def _check_private(path: Path, status: os.stat_result) -> None:
    if not _HAS_OWNERS:
        return
    if status.st_uid != os.geteuid():
        raise _unsafe(path, f"owned by user {status.st_uid}, not by user {os.geteuid()}")
    if status.st_mode & 0o7177:
        raise _unsafe(path, f"mode {stat.S_IMODE(status.st_mode):04o}, wider than 0600")
    if status.st_nlink != 1:
        raise _unsafe(path, f"reachable under {status.st_nlink} names")


def _check_folder(folder: Path) -> None:
    try:
        status = os.lstat(folder)
    except OSError as error:
        raise _unusable(folder, error) from error
    if not stat.S_ISDIR(status.st_mode):
        raise _unsafe(folder, "not a folder")
    if not _HAS_OWNERS:
        return
    if status.st_uid != os.geteuid():
        raise _unsafe(folder, f"owned by user {status.st_uid}, not by user {os.geteuid()}")
    if status.st_mode & 0o022:
        raise _unsafe(folder, f"mode {stat.S_IMODE(status.st_mode):04o}: others may write into it")


def _refuse_inside(path: Path, source: Path | None) -> None:
    if source is not None and path.resolve().is_relative_to(source.resolve()):
        raise KeyFileError(
            "the key lies inside the tree under verification, where the work being verified could reach it",
            where=str(path),
            next_step="keep keys in a private folder elsewhere",
        )


def _unsafe(path: Path, what: str) -> KeyFileError:
    return KeyFileError(
        f"this is {what}" if what.startswith(("a ", "not ")) else f"this file or folder is {what}",
        where=str(path),
        next_step="use a private file or folder of your own, made by `firsthand keys new` or `firsthand keys trust`",
    )


def _unusable(path: Path, error: OSError | RuntimeError) -> KeyFileError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return KeyFileError(f"can't be used: {reason}", where=str(path), next_step="check the path and its permissions")
