"""The seccomp program: what a mount namespace can't hide and a network namespace doesn't cover.

It denies io_uring, keyrings, bpf, ptrace, performance events, mounts, new namespaces, handles, clocks, modules and the
like; every socket family but unix, IPv4, IPv6 and route netlink (so no vsock); the terminal's input injection; foreign
architectures; and system calls newer than this program knows.

The program is classic BPF, assembled here and passed to bwrap as bytes, so that its digest can stand in the evidence.
Numbers: the kernel's system call tables of the two architectures.
"""

from __future__ import annotations

import errno
import struct
from dataclasses import dataclass
from typing import Final

# Instructions, from linux/bpf_common.h.
_LOAD_WORD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_GREATER: Final = 0x25  # BPF_JMP | BPF_JGT | BPF_K
_JUMP_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K

# Fields of struct seccomp_data. Arguments are 64 bit wide; both architectures are little-endian, so the low word, which
# is all that the kernel reads of an int, comes first.
_NUMBER: Final = 0
_ARCHITECTURE: Final = 4
_FIRST_ARGUMENT: Final = 16

_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_KILL_PROCESS: Final = 0x80000000

# CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. In clone's flags the low byte is the exit
# signal, and NEWTIME lies in it: unshare and clone3, which could use it, are denied whole.
_NEW_NAMESPACES: Final = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_NETLINK_ROUTE: Final = 0
_TIOCSTI: Final = 0x5412
_TIOCLINUX: Final = 0x541C

# Beyond this number a call is newer than this list and answers "not implemented", which every C library handles.
_NEWEST_KNOWN: Final = 469


@dataclass(frozen=True, slots=True)
class _Architecture:
    audit: int
    clone: int
    socket: int
    ioctl: int
    denied: tuple[int, ...]


# The same numbers on both: calls since 5.1 share one table.
_DENIED_SHARED: Final = (
    425,  # io_uring_setup
    426,  # io_uring_enter
    427,  # io_uring_register
    428,  # open_tree
    429,  # move_mount
    430,  # fsopen
    431,  # fsconfig
    432,  # fsmount
    433,  # fspick
    438,  # pidfd_getfd
    442,  # mount_setattr
    443,  # quotactl_fd
    467,  # open_tree_attr
)
_CLONE3: Final = 435

_ARCHITECTURES: Final = {
    "x86_64": _Architecture(
        audit=0xC000003E,
        clone=56,
        socket=41,
        ioctl=16,
        denied=(
            101,  # ptrace
            103,  # syslog
            134,  # uselib
            136,  # ustat
            139,  # sysfs
            153,  # vhangup
            154,  # modify_ldt
            155,  # pivot_root
            159,  # adjtimex
            161,  # chroot
            163,  # acct
            164,  # settimeofday
            165,  # mount
            166,  # umount2
            167,  # swapon
            168,  # swapoff
            169,  # reboot
            170,  # sethostname
            171,  # setdomainname
            172,  # iopl
            173,  # ioperm
            175,  # init_module
            176,  # delete_module
            179,  # quotactl
            212,  # lookup_dcookie
            227,  # clock_settime
            246,  # kexec_load
            248,  # add_key
            249,  # request_key
            250,  # keyctl
            272,  # unshare
            298,  # perf_event_open
            300,  # fanotify_init
            303,  # name_to_handle_at
            304,  # open_by_handle_at
            305,  # clock_adjtime
            308,  # setns
            310,  # process_vm_readv
            311,  # process_vm_writev
            312,  # kcmp
            313,  # finit_module
            320,  # kexec_file_load
            321,  # bpf
            323,  # userfaultfd
        ),
    ),
    "aarch64": _Architecture(
        audit=0xC00000B7,
        clone=220,
        socket=198,
        ioctl=29,
        denied=(
            18,  # lookup_dcookie
            39,  # umount2
            40,  # mount
            41,  # pivot_root
            51,  # chroot
            58,  # vhangup
            60,  # quotactl
            89,  # acct
            97,  # unshare
            104,  # kexec_load
            105,  # init_module
            106,  # delete_module
            112,  # clock_settime
            116,  # syslog
            117,  # ptrace
            142,  # reboot
            161,  # sethostname
            162,  # setdomainname
            170,  # settimeofday
            171,  # adjtimex
            217,  # add_key
            218,  # request_key
            219,  # keyctl
            224,  # swapon
            225,  # swapoff
            241,  # perf_event_open
            262,  # fanotify_init
            264,  # name_to_handle_at
            265,  # open_by_handle_at
            266,  # clock_adjtime
            268,  # setns
            270,  # process_vm_readv
            271,  # process_vm_writev
            272,  # kcmp
            273,  # finit_module
            280,  # bpf
            282,  # userfaultfd
            294,  # kexec_file_load
        ),
    ),
}

ARCHITECTURES: Final = tuple(_ARCHITECTURES)
"""Machines (as `platform.machine()` names them) that a program exists for."""


def program(machine: str) -> bytes:
    """The filter for one machine, as an array of `struct sock_filter`.

    Args:
        machine: one of `ARCHITECTURES`.

    Raises:
        KeyError: no program exists for this machine.
    """
    target = _ARCHITECTURES[machine]
    deny = _ERRNO | errno.EPERM
    not_implemented = _ERRNO | errno.ENOSYS
    code: list[tuple[int, int, int, int]] = []

    # 1. Another architecture would mean another table of numbers.
    code += [(_LOAD_WORD, 0, 0, _ARCHITECTURE), (_JUMP_EQUAL, 1, 0, target.audit), (_RETURN, 0, 0, _KILL_PROCESS)]
    # 2. Numbers that this program doesn't know, the x32 table included.
    code += [(_LOAD_WORD, 0, 0, _NUMBER), (_JUMP_GREATER, 0, 1, _NEWEST_KNOWN), (_RETURN, 0, 0, not_implemented)]
    # 3. Denied whole.
    for number in sorted((*target.denied, *_DENIED_SHARED)):
        code += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, deny)]
    # 4. clone3 keeps its flags in memory, where a filter can't look: C libraries fall back to clone.
    code += [(_JUMP_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, not_implemented)]
    # 5. clone, unless it makes namespaces.
    code += [
        (_JUMP_EQUAL, 0, 3, target.clone),
        (_LOAD_WORD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_ANY_BIT, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, deny),
        (_LOAD_WORD, 0, 0, _NUMBER),
    ]
    # 6. ioctl, unless it types into a terminal.
    code += [
        (_JUMP_EQUAL, 0, 4, target.ioctl),
        (_LOAD_WORD, 0, 0, _FIRST_ARGUMENT + 8),
        (_JUMP_EQUAL, 1, 0, _TIOCSTI),
        (_JUMP_EQUAL, 0, 1, _TIOCLINUX),
        (_RETURN, 0, 0, deny),
        (_LOAD_WORD, 0, 0, _NUMBER),
    ]
    # 7. socket, by family; route netlink only, which lists the namespace's own interfaces.
    code += [
        (_JUMP_EQUAL, 0, 8, target.socket),
        (_LOAD_WORD, 0, 0, _FIRST_ARGUMENT),
        (_JUMP_EQUAL, 6, 0, _AF_UNIX),
        (_JUMP_EQUAL, 5, 0, _AF_INET),
        (_JUMP_EQUAL, 4, 0, _AF_INET6),
        (_JUMP_EQUAL, 0, 2, _AF_NETLINK),
        (_LOAD_WORD, 0, 0, _FIRST_ARGUMENT + 16),
        (_JUMP_EQUAL, 1, 0, _NETLINK_ROUTE),
        (_RETURN, 0, 0, _ERRNO | errno.EAFNOSUPPORT),
    ]
    code += [(_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in code)
