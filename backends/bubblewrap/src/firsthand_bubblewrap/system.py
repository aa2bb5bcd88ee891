"""The system's own runtime as commands see it: /usr, the links to it, and an /etc made for the purpose.

Nothing of the host's /etc is mounted: what programs need of it is copied into one prepared folder, if everyone may
read it anyway, and accounts, groups and hosts are made up.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Final

USER: Final = "sandbox"
HOME: Final = "/run/home"
TMPDIR: Final = "/tmp"  # noqa: S108 # the sandbox's own, new for every command
HOSTNAME: Final = "sandbox"

MERGED: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Top-level names that are links into /usr on a merged system and folders of their own elsewhere."""

_ALTERNATIVES: Final = "/etc/alternatives"
"""Hundreds of links to programs and nothing else, so it is mounted: copying it would take longer than all the rest."""

_FILES: Final = (
    "debian_version",
    "host.conf",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "protocols",
    "services",
    "shells",
    "ssl/certs/ca-certificates.crt",
    "ssl/openssl.cnf",
    "pki/tls/certs/ca-bundle.crt",
    "terminfo",
    "timezone",
)
_PREFIXES: Final = ("java", "python3", "fonts", "perl")
_LARGEST_BYTES: Final = 4 * 1024 * 1024


def runtime_options() -> list[str]:
    """The bwrap options that show /usr and the links into it as the host has them; they follow the mount of /etc."""
    options = ["--ro-bind", "/usr", "/usr"]
    for name in MERGED:
        path = f"/{name}"
        if os.path.islink(path):
            options += ["--symlink", os.readlink(path).lstrip("/"), path]
        elif os.path.isdir(path):
            options += ["--ro-bind", path, path]
    if os.path.isdir(_ALTERNATIVES) and not os.path.islink(_ALTERNATIVES):
        options += ["--ro-bind", _ALTERNATIVES, _ALTERNATIVES]
    return options


def prepare_etc(folder: Path, *, uid: int, gid: int, source: Path = Path("/etc")) -> None:
    """Fill a new folder with what stands in for /etc.

    Args:
        folder: must not exist; becomes 0755, and all in it readable, so that the dropped uid can read it.
        uid: what the account `sandbox` has inside.
        gid: its group.
        source: the host's /etc.

    Raises:
        OSError: something can't be written.
    """
    _make_folder(folder / "alternatives")
    names = [*_FILES, *(name for name in _listed(source) if name.startswith(_PREFIXES))]
    for name in names:
        _copy(source / name, folder / name)
    accounts = f"root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n{USER}:x:{uid}:{gid}::{HOME}:/bin/sh\n"
    made = {
        "passwd": accounts,
        "group": f"root:x:0:\n{USER}:x:{gid}:\n",
        "hosts": f"127.0.0.1 localhost {HOSTNAME}\n::1 localhost\n",
        "machine-id": "0" * 31 + "1\n",
    }
    for name, text in made.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o644)


def _make_folder(path: Path) -> None:
    """Make a folder and those above it, 0755 whatever the umask."""
    if not path.is_dir():
        _make_folder(path.parent)
        path.mkdir()
        path.chmod(0o755)


def _copy_file(source: Path, target: Path) -> None:
    _make_folder(target.parent)
    shutil.copyfile(source, target)
    target.chmod(0o644)


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _copy(source: Path, target: Path) -> None:
    """Copy what everyone may read: links as links, folders whole, files up to a size; anything else is left out."""
    try:
        status = source.lstat()
        # A link to a file of /etc itself or of /usr (os-release, localtime) is of use only as what it points to.
        if stat.S_ISLNK(status.st_mode):
            aim = os.readlink(source)
            if aim.startswith(("/usr/", "../usr/")):
                _make_folder(target.parent)
                target.symlink_to(aim)
            elif source.is_file() and source.stat().st_mode & stat.S_IROTH:
                _copy_file(source, target)
        elif stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_IXOTH:
            _make_folder(target)
            for name in _listed(source):
                _copy(source / name, target / name)
        elif stat.S_ISREG(status.st_mode) and status.st_mode & stat.S_IROTH and status.st_size <= _LARGEST_BYTES:
            _copy_file(source, target)
    except (FileNotFoundError, NotADirectoryError, PermissionError, shutil.SpecialFileError):
        # What can't be read is simply not there for the command. A full disk is another matter: half a file is worse.
        return
