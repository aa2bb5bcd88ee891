"""The seccomp program, run by an interpreter of classic BPF that knows only what the kernel's does."""

from __future__ import annotations

import errno
import platform
import re
import struct
from pathlib import Path

import pytest

from firsthand_bubblewrap import seccomp

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW = 0x7FFF0000
KILL = 0x80000000


def evaluate(program: bytes, architecture: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """What the kernel would do with one call: the value that the program returns."""
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    fields = struct.pack("<IIQ6Q", number, architecture, 0, *padded)
    code = [struct.unpack_from("<HBBI", program, offset) for offset in range(0, len(program), 8)]
    accumulator = place = 0
    while True:
        operation, if_true, if_false, k = code[place]
        place += 1
        if operation == 0x06:
            return int(k)
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("<I", fields, k)
        elif operation == 0x15:
            place += if_true if accumulator == k else if_false
        elif operation == 0x25:
            place += if_true if accumulator > k else if_false
        elif operation == 0x45:
            place += if_true if accumulator & k else if_false
        else:
            raise AssertionError(f"unknown instruction {operation:#x}")


def refusal(code: int) -> int:
    return 0x00050000 | code


@pytest.fixture(params=seccomp.ARCHITECTURES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


CALLS = {
    "x86_64": {"read": 0, "clone": 56, "socket": 41, "ioctl": 16, "io_uring_setup": 425, "ptrace": 101, "keyctl": 250},
    "aarch64": {
        "read": 63,
        "clone": 220,
        "socket": 198,
        "ioctl": 29,
        "io_uring_setup": 425,
        "ptrace": 117,
        "keyctl": 219,
    },
}


def test_ordinary_calls_pass(machine: str) -> None:
    program = seccomp.program(machine)
    assert evaluate(program, AUDIT[machine], CALLS[machine]["read"]) == ALLOW


@pytest.mark.parametrize("name", ["io_uring_setup", "ptrace", "keyctl"])
def test_denied_calls_answer_eperm(machine: str, name: str) -> None:
    program = seccomp.program(machine)
    assert evaluate(program, AUDIT[machine], CALLS[machine][name]) == refusal(errno.EPERM)


def test_a_foreign_architecture_is_killed(machine: str) -> None:
    program = seccomp.program(machine)
    assert evaluate(program, 0x40000003, CALLS[machine]["read"]) == KILL


@pytest.mark.parametrize("number", [470, 10_000, 0x40000000 | 0, 0x40000000 | 425])
def test_calls_that_the_program_does_not_know_are_not_implemented(machine: str, number: int) -> None:
    assert evaluate(seccomp.program(machine), AUDIT[machine], number) == refusal(errno.ENOSYS)


def test_clone3_is_not_implemented_so_that_clone_can_be_looked_at(machine: str) -> None:
    assert evaluate(seccomp.program(machine), AUDIT[machine], 435) == refusal(errno.ENOSYS)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (17, ALLOW),  # fork: SIGCHLD
        (0x3D0F00, ALLOW),  # a thread, as C libraries make it
        (0x4111, ALLOW),  # vfork
        (0x10000000 | 17, refusal(errno.EPERM)),  # a user namespace
        (0x00020000 | 17, refusal(errno.EPERM)),  # a mount namespace
        (0x20000000, refusal(errno.EPERM)),  # a PID namespace
        (0x40000000, refusal(errno.EPERM)),  # a network namespace
        (0x02000000, refusal(errno.EPERM)),  # a cgroup namespace
        (0xFFFFFFFF_00000000 | 17, ALLOW),  # the high word is no flag
    ],
)
def test_clone_may_not_make_namespaces(machine: str, flags: int, expected: int) -> None:
    program = seccomp.program(machine)
    assert evaluate(program, AUDIT[machine], CALLS[machine]["clone"], (flags,)) == expected


@pytest.mark.parametrize(
    ("family", "protocol", "expected"),
    [
        (1, 0, ALLOW),
        (2, 0, ALLOW),
        (10, 0, ALLOW),
        (16, 0, ALLOW),  # route netlink: interfaces of the own namespace
        (16, 9, refusal(errno.EAFNOSUPPORT)),  # audit
        (40, 0, refusal(errno.EAFNOSUPPORT)),  # vsock
        (38, 0, refusal(errno.EAFNOSUPPORT)),  # the kernel's cryptography
        (17, 0, refusal(errno.EAFNOSUPPORT)),  # packets
        (0x1_00000028, 0, refusal(errno.EAFNOSUPPORT)),  # vsock behind a high word that the kernel drops
    ],
)
def test_sockets_by_family(machine: str, family: int, protocol: int, expected: int) -> None:
    program = seccomp.program(machine)
    assert evaluate(program, AUDIT[machine], CALLS[machine]["socket"], (family, 1, protocol)) == expected


@pytest.mark.parametrize(
    ("request_code", "expected"),
    [
        (0x5401, ALLOW),
        (0x5412, refusal(errno.EPERM)),
        (0x541C, refusal(errno.EPERM)),
        (0xFFFFFFFF_00005412, refusal(errno.EPERM)),  # the kernel drops the high word, so must we
    ],
)
def test_terminals_take_no_injected_input(machine: str, request_code: int, expected: int) -> None:
    program = seccomp.program(machine)
    assert evaluate(program, AUDIT[machine], CALLS[machine]["ioctl"], (0, request_code)) == expected


def test_jumps_end_inside_and_the_last_instruction_returns(machine: str) -> None:
    program = seccomp.program(machine)
    count = len(program) // 8
    for place in range(count):
        operation, if_true, if_false, _ = struct.unpack_from("<HBBI", program, place * 8)
        if operation & 0x07 == 0x05:
            assert place + 1 + max(if_true, if_false) < count
    assert struct.unpack_from("<H", program, (count - 1) * 8)[0] == 0x06
    assert count <= 4096


HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def test_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    header = HEADERS[machine]
    if not header.exists():
        pytest.skip(f"no kernel header {header}")
    text = header.read_text().replace("\\\n", " ")
    numbers = {int(number): name for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    source = Path(seccomp.__file__).read_text()
    part = source[source.index(f'"{machine}": _Architecture(') :]
    part = part[: part.index("\n    ),\n")]
    shared = source[source.index("_DENIED_SHARED") : source.index("_CLONE3")]
    listed = re.findall(r"(\d+),  # (\w+)", part + shared)
    assert len(listed) > 40
    for number, name in listed:
        if int(number) in numbers:
            assert numbers[int(number)] == name


@pytest.mark.skipif(platform.machine() not in seccomp.ARCHITECTURES, reason="no program for this machine")
def test_an_unknown_machine_has_no_program() -> None:
    with pytest.raises(KeyError):
        seccomp.program("riscv64")
