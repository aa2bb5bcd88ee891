"""What a command may not ask of the kernel: doors that neither mounts nor namespaces close."""

from __future__ import annotations

import errno
import struct
from typing import Final

_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
"""Where struct seccomp_data has the call's number, the architecture, and the low words of two arguments."""

_LOAD, _IF_EQUAL, _IF_ABOVE, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000

_AUDIT: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

# Name: number on x86-64, number on 64-bit ARM. Calls since 5.1 have one number everywhere.
_DENIED: Final = {
    "ptrace": (101, 117),
    "syslog": (103, 116),
    "pivot_root": (155, 41),
    "mount": (165, 40),
    "umount2": (166, 39),
    "init_module": (175, 105),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "perf_event_open": (298, 241),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "setns": (308, 268),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "finit_module": (313, 273),
    "kexec_file_load": (320, 294),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "pidfd_getfd": (438, 438),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
}
_CLONE, _SOCKET, _IOCTL = (56, 220), (41, 198), (16, 29)
_CLONE3: Final = 435
_FOREIGN_TABLE: Final = 0x3FFFFFFF  # above it, x86-64 has a second table of numbers (x32)
_NEW_NAMESPACE: Final = 0x7E020080  # the CLONE_NEW* flags, all eight
_FAMILIES: Final = (1, 2, 10, 16)  # unix, IPv4, IPv6, netlink: of its own network namespace; no vsock, no packets
_TERMINAL: Final = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: input pushed into a terminal

ARCHITECTURES: Final = tuple(_AUDIT)


def program(machine: str) -> bytes:
    """The filter for a machine as `platform.machine()` names it, in the form that `bwrap --seccomp` reads.

    Raises:
        KeyError: no such machine is known.
    """
    which = tuple(_AUDIT).index(machine)
    refuse = _ERRNO | errno.EPERM
    code = [(_LOAD, 0, 0, _ARCHITECTURE), *_unless(_AUDIT[machine], _KILL), (_LOAD, 0, 0, _NUMBER)]
    code += [(_IF_ABOVE, 0, 1, _FOREIGN_TABLE), (_RETURN, 0, 0, _KILL)]
    for numbers in _DENIED.values():
        code += _when(numbers[which], refuse)
    # Its flags lie in memory, where a filter can't look. C libraries fall back to clone when it does not exist.
    code += _when(_CLONE3, _ERRNO | errno.ENOSYS)
    # CLONE_NEWTIME shares its bit with clone's exit signal, so clone can't ask for it and the test must not see it.
    namespaces = _NEW_NAMESPACE & ~0xFF
    code += _branch(_CLONE[which], [(_LOAD, 0, 0, _FIRST), (_IF_ANY_BIT, 0, 1, namespaces), (_RETURN, 0, 0, refuse)])
    family = [(_IF_EQUAL, len(_FAMILIES) - at, 0, number) for at, number in enumerate(_FAMILIES)]
    code += _branch(_SOCKET[which], [(_LOAD, 0, 0, _FIRST), *family, (_RETURN, 0, 0, refuse)])
    push = [step for number in _TERMINAL for step in _when(number, refuse)]
    code += _branch(_IOCTL[which], [(_LOAD, 0, 0, _SECOND), *push])
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in code)


_Step = tuple[int, int, int, int]


def _when(value: int, verdict: int) -> list[_Step]:
    return [(_IF_EQUAL, 0, 1, value), (_RETURN, 0, 0, verdict)]


def _unless(value: int, verdict: int) -> list[_Step]:
    return [(_IF_EQUAL, 1, 0, value), (_RETURN, 0, 0, verdict)]


def _branch(number: int, steps: list[_Step]) -> list[_Step]:
    """Steps for one call alone; whoever is still here after them is allowed, since they overwrote the number."""
    return [(_IF_EQUAL, 0, len(steps) + 1, number), *steps, (_RETURN, 0, 0, _ALLOW)]
