"""The numbers of the system calls that the filter names, for each machine it can be built for.

Facts of `asm/unistd_64.h` (x86-64) and `asm-generic/unistd.h` (aarch64); calls newer than those
headers have the same number on both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """One architecture.

    Attributes:
        arch: its `AUDIT_ARCH_…`, as the filter sees it.
        forbidden: refused at every level.
        alone: refused too where no namespaces and no read-only mounts stand behind the filter.
        modes: calls that set permission bits: (number, which argument holds the bits).
        opens: calls that may create a file: (number, argument of the flags, of the bits).
        x32: whether there is a second set of numbers above bit 30.
    """

    arch: int
    clone: int
    socket: int
    socketpair: int
    ioctl: int
    prlimit: int
    utimensat: int
    personality: int
    forbidden: Mapping[str, int]
    alone: Mapping[str, int]
    modes: tuple[tuple[int, int], ...]
    opens: tuple[tuple[int, int, int], ...]
    x32: bool = False


_COMMON = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "clone3": 435, "openat2": 437, "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443,
    "open_tree_attr": 467,
}  # fmt: skip
_COMMON_ALONE = {
    "process_madvise": 440, "process_mrelease": 448, "fchmodat2": 452, "setxattrat": 463,
    "removexattrat": 466, "file_setattr": 469,
}  # fmt: skip
_FCHMODAT2 = (452, 2)

MACHINES: Mapping[str, Machine] = {
    "x86_64": Machine(
        0xC000003E, clone=56, socket=41, socketpair=53, ioctl=16, prlimit=302,
        utimensat=280, personality=135, x32=True,
        forbidden=_COMMON | {
            "ptrace": 101, "syslog": 103, "vhangup": 153, "modify_ldt": 154, "pivot_root": 155,
            "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166,
            "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170,
            "setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175,
            "delete_module": 176, "quotactl": 179, "lookup_dcookie": 212, "clock_settime": 227,
            "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250,
            "migrate_pages": 256, "unshare": 272, "move_pages": 279, "perf_event_open": 298,
            "fanotify_init": 300, "name_to_handle_at": 303, "open_by_handle_at": 304,
            "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310,
            "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "kexec_file_load": 320,
            "bpf": 321, "userfaultfd": 323,
        },
        alone=_COMMON_ALONE | {
            "shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "semop": 65, "semctl": 66,
            "msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "chmod": 90, "fchmod": 91,
            "chown": 92, "fchown": 93, "lchown": 94, "utime": 132, "setpriority": 141,
            "sched_setparam": 142, "sched_setscheduler": 144, "setxattr": 188, "lsetxattr": 189,
            "fsetxattr": 190, "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199,
            "sched_setaffinity": 203, "semtimedop": 220, "utimes": 235, "mq_open": 240,
            "mq_unlink": 241, "ioprio_set": 251, "inotify_add_watch": 254, "fchownat": 260,
            "futimesat": 261, "fchmodat": 268, "sched_setattr": 314,
        },
        modes=((90, 1), (91, 1), (268, 2), (85, 1), (133, 1), (259, 2), _FCHMODAT2),
        opens=((2, 1, 2), (257, 2, 3)),
    ),
    "aarch64": Machine(
        0xC00000B7, clone=220, socket=198, socketpair=199, ioctl=29, prlimit=261,
        utimensat=88, personality=92,
        forbidden=_COMMON | {
            "lookup_dcookie": 18, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51,
            "vhangup": 58, "quotactl": 60, "acct": 89, "kexec_load": 104, "init_module": 105,
            "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117,
            "reboot": 142, "sethostname": 161, "setdomainname": 162, "settimeofday": 170,
            "add_key": 217, "request_key": 218, "keyctl": 219, "swapon": 224, "swapoff": 225,
            "migrate_pages": 238, "move_pages": 239, "perf_event_open": 241,
            "fanotify_init": 262, "name_to_handle_at": 264, "open_by_handle_at": 265,
            "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270,
            "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "bpf": 280,
            "userfaultfd": 282, "kexec_file_load": 294, "unshare": 97,
        },
        alone=_COMMON_ALONE | {
            "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14,
            "lremovexattr": 15, "fremovexattr": 16, "inotify_add_watch": 27, "ioprio_set": 30,
            "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "sched_setparam": 118,
            "sched_setscheduler": 119, "sched_setaffinity": 122, "setpriority": 140,
            "mq_open": 180, "mq_unlink": 181, "msgget": 186, "msgctl": 187, "msgrcv": 188,
            "msgsnd": 189, "semget": 190, "semctl": 191, "semtimedop": 192, "semop": 193,
            "shmget": 194, "shmctl": 195, "shmat": 196, "sched_setattr": 274,
        },
        modes=((52, 1), (53, 2), (33, 2), _FCHMODAT2),
        opens=((56, 2, 3),),
    ),
}  # fmt: skip
