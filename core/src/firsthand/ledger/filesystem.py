"""Which file systems lie on another machine: there, SQLite's locks and syncs promise nothing."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

NETWORK_MAGICS: Final[Mapping[int, str]] = MappingProxyType(
    {
        0x6969: "NFS",
        0x517B: "SMB",
        0xFF534D42: "CIFS",
        0xFE534D42: "SMB 2",
        0x01021997: "9P",
        0x00C36400: "Ceph",
        0x5346414F: "AFS",
        0x6B414653: "AFS",
        0x73757245: "Coda",
        0x0000564C: "NCP",
        0x0BD00BD0: "Lustre",
        0x47504653: "GPFS",
        0x01161970: "GFS2",
        0x7461636F: "OCFS2",
        0x19830326: "BeeGFS",
        0x786F4256: "VirtualBox shared folder",
        0x7C7C6673: "Parallels shared folder",
        0x65735546: "FUSE (which may be a network file system)",
    }
)
"""`f_type` of Linux's statfs(2). FUSE is among them: which program answers behind it can't be told."""

_NETWORK_NAMES: Final = frozenset({"nfs", "smbfs", "afpfs", "webdav", "ftp", "cifs", "macfuse", "osxfuse"})
_MNT_LOCAL: Final = 0x1000
_DRIVE_REMOTE: Final = 4
_STATFS_BYTES: Final = 4096


def network_name(path: Path) -> str | None:
    """The name of the network file system that a path lies on; None on a local one, or where the platform won't say."""
    name: str | None = None
    if sys.platform == "linux":
        name = NETWORK_MAGICS.get(_magic(path))
    elif sys.platform == "darwin":
        name = _name_on_macos(path)
    elif sys.platform == "win32":
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        if kernel.GetDriveTypeW(ctypes.c_wchar_p(path.anchor)) == _DRIVE_REMOTE:
            name = "network drive"
    return name


def _magic(path: Path) -> int:
    """`f_type`: the first word of struct statfs, of which the low 32 bits carry the number."""
    buffer = _statfs(path, "statfs")
    return int.from_bytes(buffer[: ctypes.sizeof(ctypes.c_long)], sys.byteorder) & 0xFFFFFFFF if buffer else 0


def _name_on_macos(path: Path) -> str | None:
    # struct statfs with 64-bit inode numbers: f_flags at 64, f_fstypename at 72 (16 bytes).
    buffer = _statfs(path, "statfs$INODE64") or _statfs(path, "statfs")
    if not buffer:
        return None
    flags = int.from_bytes(buffer[64:68], sys.byteorder)
    name = buffer[72:88].split(b"\0")[0].decode("ascii", "replace")
    return name if name in _NETWORK_NAMES or not flags & _MNT_LOCAL else None


def _statfs(path: Path, symbol: str) -> bytes:
    library = ctypes.CDLL(None, use_errno=True)
    try:
        call = getattr(library, symbol)
    except AttributeError:
        return b""
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    return buffer.raw if call(os.fsencode(path), buffer) == 0 else b""
