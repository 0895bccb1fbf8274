"""The filter, judged by a small interpreter of its instructions, for both machines."""

import errno
import struct

import pytest

from lorimer.core.errors import SandboxUnavailable
from lorimer.safety.sandbox import seccomp

ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CALLS = {
    "x86_64": {"socket": 41, "socketpair": 53, "clone": 56, "clone3": 435, "read": 0, "ptrace": 101,
               "io_uring_setup": 425, "unshare": 272, "ioctl": 16, "keyctl": 250, "bpf": 321,
               "openat": 257, "fchmod": 91, "fchmodat": 268, "mknodat": 259, "prlimit64": 302,
               "utimensat": 280, "shmget": 29, "openat2": 437, "fchmodat2": 452,
               "personality": 135},
    "aarch64": {"socket": 198, "socketpair": 199, "clone": 220, "clone3": 435, "read": 63,
                "ptrace": 117, "io_uring_setup": 425, "unshare": 97, "ioctl": 29, "keyctl": 219,
                "bpf": 280, "openat": 56, "fchmod": 52, "fchmodat": 53, "mknodat": 33,
                "prlimit64": 261, "utimensat": 88, "shmget": 194, "openat2": 437,
                "fchmodat2": 452, "personality": 92},
}  # fmt: skip
ALLOW, KILL = 0x7FFF0000, 0x80000000
MACHINES = list(ARCH)


def verdict(program: bytes, arch: int, number: int, *arguments: int) -> int:
    filled = [*arguments, *[0] * (6 - len(arguments))]
    facts = struct.pack("=IIQ6Q", number, arch, 0, *filled)
    steps = list(struct.iter_unpack("=HBBI", program))
    accumulator = at = 0
    while True:
        code, if_true, if_false, k = steps[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", facts, k)
        elif code == 0x06:
            return int(k)
        else:
            holds = {0x15: accumulator == k, 0x35: accumulator >= k, 0x45: bool(accumulator & k)}
            at += if_true if holds[code] else if_false


def no(code: int) -> int:
    return 0x00050000 | code


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "arguments", "expected"),
    [
        ("read", (), ALLOW),
        ("socket", (2,), ALLOW),
        ("socket", (10,), ALLOW),
        ("socket", (1,), no(errno.EAFNOSUPPORT)),
        ("socket", (16,), no(errno.EAFNOSUPPORT)),
        ("socket", (17,), no(errno.EAFNOSUPPORT)),
        ("socket", (40,), no(errno.EAFNOSUPPORT)),
        ("socket", (38,), no(errno.EAFNOSUPPORT)),
        ("socketpair", (1,), ALLOW),
        ("socketpair", (16,), no(errno.EAFNOSUPPORT)),
        ("clone", (0x01200011,), ALLOW),
        ("clone", (0x10000000,), no(errno.EPERM)),
        ("clone", (0x00020000,), no(errno.EPERM)),
        ("clone3", (), no(errno.ENOSYS)),
        ("io_uring_setup", (), no(errno.ENOSYS)),
        ("ptrace", (), no(errno.EPERM)),
        ("unshare", (), no(errno.EPERM)),
        ("keyctl", (), no(errno.EPERM)),
        ("bpf", (), no(errno.EPERM)),
        ("ioctl", (0, 0x5412), no(errno.EPERM)),
        ("ioctl", (0, 0x541C), no(errno.EPERM)),
        ("ioctl", (0, 0x5401), ALLOW),
        ("ioctl", (0, 0x40086602), ALLOW),
        ("fchmod", (3, 0o755), ALLOW),
        ("fchmod", (3, 0o4755), no(errno.EPERM)),
        ("fchmod", (3, 0o2755), no(errno.EPERM)),
        ("fchmodat", (3, 0, 0o4755), no(errno.EPERM)),
        ("fchmodat", (3, 0, 0o1777), ALLOW),
        ("mknodat", (3, 0, 0o104755), no(errno.EPERM)),
        ("mknodat", (3, 0, 0o10644), ALLOW),
        ("openat", (3, 0, 0o101, 0o644), ALLOW),
        ("openat", (3, 0, 0o101, 0o4755), no(errno.EPERM)),
        ("openat", (3, 0, 0x410000, 0o4755), no(errno.EPERM)),
        ("openat", (3, 0, 0, 0o7777), ALLOW),
        ("openat2", (), no(errno.ENOSYS)),
        ("personality", (0,), ALLOW),
        ("personality", (0xFFFFFFFF,), ALLOW),
        ("personality", (0x0400000,), no(errno.EPERM)),
        ("fchmodat2", (3, 0, 0o4755, 0), no(errno.EPERM)),
        ("prlimit64", (4711,), ALLOW),
        ("utimensat", (3, 0x7FFF00000000), ALLOW),
        ("shmget", (), ALLOW),
    ],
)
def test_verdicts(machine: str, call: str, arguments: tuple[int, ...], expected: int) -> None:
    program = seccomp.build(machine)
    assert verdict(program, ARCH[machine], CALLS[machine][call], *arguments) == expected


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "arguments", "expected"),
    [
        ("read", (), ALLOW),
        ("socket", (2,), no(errno.EAFNOSUPPORT)),
        ("socket", (10,), no(errno.EAFNOSUPPORT)),
        ("socket", (1,), no(errno.EAFNOSUPPORT)),
        ("socketpair", (1,), ALLOW),
        ("fchmod", (3, 0o644), no(errno.EPERM)),
        ("fchmodat", (3, 0, 0o644), no(errno.EPERM)),
        ("fchmodat2", (), no(errno.ENOSYS)),
        ("shmget", (), no(errno.EPERM)),
        ("prlimit64", (0,), ALLOW),
        ("prlimit64", (4711,), no(errno.EPERM)),
        ("utimensat", (3, 0), ALLOW),
        ("utimensat", (3, 0x7FFF00000000), no(errno.EPERM)),
        ("utimensat", (3, 0x1000), no(errno.EPERM)),
        ("ioctl", (0, 0x40086602), no(errno.EPERM)),
        ("ioctl", (0, 0x5401), ALLOW),
        ("unshare", (), no(errno.EPERM)),
    ],
)
def test_verdicts_where_only_landlock_stands_behind(
    machine: str, call: str, arguments: tuple[int, ...], expected: int
) -> None:
    program = seccomp.build(machine, alone=True)
    assert verdict(program, ARCH[machine], CALLS[machine][call], *arguments) == expected


@pytest.mark.parametrize("machine", MACHINES)
def test_unix_sockets_only_where_they_are_granted(machine: str) -> None:
    program = seccomp.build(machine, unix_sockets=True)
    assert verdict(program, ARCH[machine], CALLS[machine]["socket"], 1) == ALLOW


def test_calls_of_another_architecture_kill() -> None:
    assert verdict(seccomp.build("x86_64"), 0x40000003, 0) == KILL


def test_the_x32_numbers_do_not_exist() -> None:
    number = 0x40000000 + 101
    assert verdict(seccomp.build("x86_64"), ARCH["x86_64"], number) == no(errno.ENOSYS)


def test_an_unknown_machine_is_refused() -> None:
    with pytest.raises(SandboxUnavailable, match="riscv64"):
        seccomp.build("riscv64")
