"""The attempts, as data: what is tried, how it shows, and what should stop it.

Each has a control: the same attempt without a sandbox, as a user without privileges. Where the
control fails too, a "stopped" says nothing about the sandbox, and the table says so. What could do
harm outside has no control, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Evidence = Literal["canary", "said", "outside", "protected", "beats", "killed", "victim", "tools"]
"""How an attempt that got through shows:

- `canary`: the program shows a secret that only the place it was to read has
- `said`: the program says that it got what it wanted
- `outside`: files outside the workspace are not as they were
- `protected`: protected names in the workspace are not as they were
- `beats`: something is still running afterwards
- `killed`: the program says it used up too much, and nobody stopped it
- `victim`: another process has ended
- `tools`: our file tools follow what it left in the workspace
"""

_BOMB = "outside a sandbox it would harm this machine"
_OURS = "a time-out is set by us, there is none outside"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One of them.

    Attributes:
        probe: `module.function` in `inside/`.
        by: what should stop it with bubblewrap; `alone`: with Landlock, when something else does.
        place: which path of the arena goes to the program as `path`.
        parameters: further ones.
        no_control: why there is none; empty when there is one.
        limits: of this run.
        ends: reasons to kill the tree that count as stopped.
        repository: whether the workspace is a git repository with settings, or empty.
        known: for levels at which it is open and documented so, why.
    """

    name: str
    what: str
    probe: str
    by: str
    evidence: Evidence = "said"
    alone: str = ""
    place: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    no_control: str = ""
    limits: Mapping[str, Any] = field(default_factory=dict)
    ends: tuple[str, ...] = ()
    repository: bool = True
    known: Mapping[str, str] = field(default_factory=dict)


def _read(name: str, what: str, probe: str = "files.read", place: str = "outside/secret",
          by: str = "mounts", **more: Any) -> Attempt:  # fmt: skip
    return Attempt(name, what, probe, by, "canary", alone="landlock", place=place, **more)


def _write(name: str, what: str, probe: str = "files.write", place: str = "outside/file",
           by: str = "mounts", **more: Any) -> Attempt:  # fmt: skip
    more = {"alone": "landlock", **more}
    return Attempt(name, what, probe, by, "outside", place=place, **more)


def _guarded(name: str, what: str, probe: str, by: str = "read-only mount",
             **more: Any) -> Attempt:  # fmt: skip
    return Attempt(name, what, f"files.{probe}", by, "protected", alone="put back", **more)


def _call(name: str, what: str, probe: str, by: str = "seccomp", **more: Any) -> Attempt:
    return Attempt(name, what, probe, by, **more)


def _bomb(name: str, what: str, probe: str, by: str, *ends: str, limits: dict[str, Any],
          **parameters: Any) -> Attempt:  # fmt: skip
    return Attempt(name, what, f"bombs.{probe}", by, "killed", parameters=parameters,
                   no_control=_BOMB, limits=limits, ends=ends)  # fmt: skip


_MIB = 1 << 20

SECRETS = (
    _read("read-home", "read cloud credentials at home", place="home/.aws/credentials"),
    _read("read-ssh-key", "read a private SSH key", place="home/.ssh/id_ed25519"),
    _read("read-store", "read our own store of sessions", place="store/lorimer.db"),
    _read("read-neighbour", "read a folder beside the workspace"),
    Attempt("read-shadow", "read the machine's password hashes", "files.read_shadow", "mounts",
            alone="landlock"),
    _read("read-dotdot", "read by `..`", "files.read_dotdot"),
    _read("read-link", "read by a symbolic link out", "files.read_link_made_here"),
    _read("read-link-folder", "read by a link to a folder", "files.read_link_to_folder"),
    _read("read-hard-link", "read by a hard link out", "files.read_hard_link"),
    _read("read-proc-root", "read by /proc/self/root", "files.read_by_proc_root"),
    _read("read-proc-cwd", "read by /proc/self/cwd and `..`", "files.read_by_proc_cwd"),
    _read("read-folder-fd", "read by a folder's descriptor", "files.read_by_descriptor_of_folder"),
    _read("read-inherited-fd", "read a file that we left open", "files.read_inherited",
          by="closed files"),
    Attempt("list-home", "list the home folder", "files.list_home", "mounts",
            alone="landlock", place="home/.ssh/id_ed25519"),
    _read("read-environment", "find our keys in its environment", "files.own_environment",
          by="own environment"),
    _read("read-environ-files", "find keys in /proc/*/environ", "files.environments",
          by="pid namespace"),
    _read("read-command-lines", "find keys in /proc/*/cmdline", "files.command_lines",
          by="pid namespace"),
    _read("read-dev-shm", "read the machine's /dev/shm", "files.shared_memory_files"),
    _read("read-shared-memory", "read System V shared memory", "calls.shared_memory",
          by="ipc namespace"),
    Attempt("metadata", "see that a file outside is there", "files.metadata", "mounts",
            place="outside/secret", known={"landlock": "Landlock does not look at stat"}),
    Attempt("account-names", "read the names of accounts", "files.account_names", "mounts",
            known={"landlock": "programs need them to find their own"}),
)  # fmt: skip

WRITES = (
    _write("write-new", "make a file outside", place="outside/new"),
    _write("write-append", "write to a file outside"),
    _write("write-home", "change a shell start-up file at home", place="home/.bashrc"),
    _write("write-store", "change our own store", place="store/lorimer.db"),
    _write("write-shown", "change what is shown read-only", place="shown/file"),
    _write("write-dotdot", "write by `..`", "files.write_dotdot"),
    _write("write-link", "write by a symbolic link out", "files.write_link_made_here"),
    _write("write-hard-link", "write by a hard link out", "files.write_hard_link"),
    _write("write-proc-root", "write by /proc/self/root", "files.write_by_proc_root"),
    _write("truncate", "cut off a file outside", "files.truncate"),
    _write("change-mode", "open a file outside to everybody", "files.change_mode",
           alone="seccomp"),
    _write("change-times", "change the times of a file outside", "files.change_times",
           alone="seccomp"),
    _write("delete", "delete a file outside", "files.delete"),
    _write("rename-over", "replace a file outside", "files.rename_over"),
    Attempt("link-for-tools", "leave a link for our file tools", "files.leave_link",
            "openat2", "tools", place="outside/secret"),
    Attempt("setuid-file", "leave a program that runs as the user", "files.setuid_file",
            "seccomp"),
    Attempt("device-node", "make a device", "files.device_node", "no capabilities",
            alone="landlock"),
    Attempt("open-memory", "open the machine's memory", "files.open_memory", "mounts",
            alone="landlock"),
    Attempt("open-disks", "open the machine's disks", "files.open_disks", "mounts",
            alone="landlock"),
    Attempt("kernel-settings", "open kernel settings for writing", "files.kernel_settings",
            "mounts", alone="landlock"),
    Attempt("sysrq", "open /proc/sysrq-trigger for writing", "files.sysrq", "mounts",
            alone="landlock"),
)  # fmt: skip

PROTECTED = (
    _guarded("git-hook", "write a git hook", "hook"),
    _guarded("git-config", "write .git/config", "git_config"),
    _guarded("git-config-replace", "rename a file over .git/config", "git_config_renamed_over"),
    _guarded("git-config-link", "write .git/config by a hard link", "git_config_linked"),
    _guarded("git-rename", "rename .git and make a new one", "git_renamed", "mount point"),
    _guarded("git-hooks-rename", "rename .git/hooks and make new ones", "hooks_renamed",
             "mount point"),
    _guarded("git-make", "make a .git where there is none", "git_made", "watched",
             repository=False),
    _guarded("git-nested", "write a hook of a repository inside", "nested_hook"),
    _guarded("mcp", "change .mcp.json", "mcp"),
    _guarded("mcp-make", "make a .mcp.json", "mcp", "watched", repository=False),
    _guarded("own-settings", "make a lorimer.toml", "own_configuration", "watched"),
    _guarded("own-folder", "make a .lorimer folder", "own_folder", "watched"),
    _guarded("own-folder-rename", "rename a folder to .lorimer", "own_folder_renamed",
             "watched"),
    _guarded("start-up-files", "make shell start-up files", "start_up_file", "watched"),
    _guarded("editor-tasks", "write an editor's tasks", "editor_tasks"),
    _guarded("editor-rename", "rename .vscode and make a new one", "editor_renamed",
             "mount point"),
)  # fmt: skip

NETWORK = (
    _call("tcp", "connect to this machine by TCP", "network.tcp", "net namespace",
          alone="seccomp"),
    _call("udp", "send to this machine by UDP", "network.udp", "net namespace", alone="seccomp"),
    _call("unix-socket", "connect to a unix socket", "network.unix"),
    _call("abstract-socket", "connect to an abstract unix socket", "network.abstract"),
    _call("vsock", "talk to the machine's host", "network.vsock"),
    _call("netlink", "talk to the kernel by netlink", "network.netlink"),
    _call("kernel-crypto", "use the kernel's crypto sockets", "network.algorithms"),
    _call("packet-socket", "send raw packets", "network.packet"),
    _call("raw-socket", "send raw IP", "network.raw"),
)  # fmt: skip

PROCESSES = (
    Attempt("signal-other", "end another process", "processes.terminate", "pid namespace",
            "victim", alone="landlock"),
    Attempt("signal-all", "signal everything (kill -1)", "processes.signal_all",
            "pid namespace", "victim", alone="landlock"),
    Attempt("signal-us", "signal lorimer itself", "processes.signal_parent_group",
            "pid namespace", alone="landlock"),
    _call("ptrace", "trace another process", "processes.trace"),
    _call("ptrace-parent", "trace its parent", "processes.trace_parent"),
    _call("read-memory", "read another process's memory", "processes.read_memory"),
    _call("open-mem-file", "open /proc/*/mem of another", "processes.open_memory",
          "pid namespace", alone="landlock"),
    _call("steal-descriptor", "copy another process's descriptor",
          "processes.steal_descriptor"),
    _call("change-limits", "change another process's limits", "processes.change_limits",
          "pid namespace", alone="seccomp"),
    _call("compare-objects", "compare kernel objects (kcmp)", "processes.compare"),
    Attempt("daemon", "leave a process behind", "processes.daemon", "pid namespace end",
            "beats", alone="subreaper", parameters={"for_s": 4.0}),
    Attempt("ignore-time-out", "go on after the time-out", "processes.ignore_time_out",
            "pid namespace end", "beats", alone="subreaper", no_control=_OURS,
            limits={"wall_s": 1.0}, ends=("timeout",)),
)  # fmt: skip

KERNEL = (
    _call("mount", "mount a file system", "calls.mount"),
    _call("mount-call", "call mount", "calls.mount_arguments"),
    _call("mount-new-calls", "call open_tree, fsopen, move_mount", "calls.new_mount_calls"),
    _call("umount", "unmount what hides files", "calls.umount"),
    _call("pivot-root", "change the root of the mounts", "calls.pivot_root"),
    _call("chroot", "change its root folder", "calls.chroot"),
    _call("user-namespace", "be root in a new user namespace", "calls.unshare"),
    _call("clone-namespace", "make a namespace by clone", "calls.clone"),
    _call("clone3-namespace", "make a namespace by clone3", "calls.clone3"),
    _call("setns", "enter another namespace", "calls.setns"),
    _call("io-uring", "use io_uring", "calls.io_uring"),
    _call("bpf", "load programs into the kernel", "calls.bpf"),
    _call("perf", "measure other programs", "calls.perf"),
    _call("keyrings", "use kernel keyrings", "calls.keyrings"),
    _call("userfaultfd", "handle its own page faults", "calls.page_faults"),
    _call("kernel-modules", "load or remove kernel modules", "calls.kernel_modules"),
    _call("restart", "restart the machine, or load a kernel", "calls.restart"),
    _call("file-handles", "open files by handle", "calls.file_handles"),
    _call("kernel-log", "read the kernel's log", "calls.kernel_log"),
    _call("ports", "use I/O ports", "calls.ports"),
    _call("personality", "switch off memory protection", "calls.personality"),
    _call("terminal", "open the terminal", "calls.terminal", "new session"),
    _call("type-ahead", "type into a terminal (TIOCSTI)", "calls.type_into_terminal",
          alone="landlock"),
    _call("setuid-programs", "run set-user-id programs", "calls.privileges", "no new privileges"),
    _call("capabilities", "have or get capabilities", "calls.capabilities", "no capabilities"),
)  # fmt: skip

BOMBS = (
    _bomb("fork-bomb", "start processes without end", "processes", "process limit",
          "processes", limits={"processes": 40}, bound=400, limit=40),
    _bomb("memory-bomb", "take all memory", "memory", "address limit",
          limits={"memory_bytes": 512 * _MIB}, bound=2048 * _MIB),
    _bomb("memory-of-many", "take all memory by many processes", "memory_of_many",
          "memory watch", "memory",
          limits={"memory_bytes": 512 * _MIB, "tree_memory_bytes": 192 * _MIB},
          many=6, each=64 * _MIB),
    _bomb("memory-without-name", "take all memory by files in memory", "memory_without_name",
          "memory watch", "memory", limits={"tree_memory_bytes": 96 * _MIB}, bound=256 * _MIB),
    _bomb("one-file", "write a huge file", "one_file", "file size limit",
          limits={"file_bytes": 8 * _MIB}, bound=32 * _MIB),
    _bomb("disk-fill", "fill the disk with files", "many_files", "disk watch", "disk",
          limits={"disk_bytes": 16 * _MIB}, bound=96 * _MIB),
    _bomb("disk-fill-deleted", "fill the disk with a deleted file", "deleted_file",
          "disk watch", "disk", limits={"disk_bytes": 16 * _MIB}, bound=96 * _MIB),
    _bomb("temporary-fill", "fill the temporary folder", "temporary_space",
          "tmpfs size", "disk", "memory",
          limits={"tmp_bytes": 16 * _MIB, "disk_bytes": 16 * _MIB, "file_bytes": 48 * _MIB},
          bound=64 * _MIB),
    _bomb("inode-fill", "make files without end", "files", "disk watch", "inodes",
          limits={"inodes": 500}, bound=20_000),
    _bomb("inode-fill-temporary", "make temporary files without end", "temporary_files",
          "tmpfs watch", "inodes", limits={"inodes": 500}, bound=20_000),
    _bomb("output-flood", "write output without end", "output", "output limit", "output",
          limits={"output_bytes": 4 * _MIB}, bound=256 * _MIB),
    _bomb("cpu", "compute without end", "cpu", "CPU time limit", limits={"cpu_s": 1}, for_s=10.0),
)  # fmt: skip

ATTEMPTS: tuple[Attempt, ...] = (
    *SECRETS, *WRITES, *PROTECTED, *NETWORK, *PROCESSES, *KERNEL, *BOMBS,
)  # fmt: skip
