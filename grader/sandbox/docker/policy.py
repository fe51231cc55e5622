"""What a box may do: the options its container is created with. Pure; assessment.py holds the box against it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

SUPERVISOR_PATH = "/.grader/supervisor"
"""Where the supervisor is in every image that boxes run."""
HOST_NAME = "box"
MIB = 2**20

CAPABILITIES = ("CHOWN", "KILL", "SETGID", "SETUID")
"""All that the supervisor has; a program has none. In the order of their bits, see `CAPABILITY_MASK`."""
CAPABILITY_MASK = 1 << 0 | 1 << 5 | 1 << 6 | 1 << 7

SYSCTLS = {
    # No System V shared memory, message queues or semaphores, and no POSIX queues: nothing to hand on in them.
    "kernel.shmmni": "0",
    "kernel.msgmni": "0",
    "kernel.sem": "0 0 0 0",
    "fs.mqueue.queues_max": "0",
    # A port that one run closed can be bound by the next: else TIME_WAIT would leak from run to run.
    "net.ipv4.tcp_max_tw_buckets": "0",
}

MASKED_PATHS = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/pressure",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
)
"""The engine's own list (it is replaced, not added to), and /proc/pressure: a busy host is nobody's business."""
PODMANS_OWN_FOLDERS = ("/run", "/var/tmp")
READ_ONLY_PATHS = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")

SUPERVISOR_PROCESSES = 8
"""Core, front, canary, hand, and a child on its way to exec; some to spare."""
SUPERVISOR_OPEN_FILES = 4096
SUPERVISOR_MEMORY_BYTES = 16 * MIB
STDIN_BUFFER_BYTES = 16 * MIB
SWAP_MARGIN_BYTES = MIB

SHARED_MEMORY_INODES = 512
SUBMISSION_INODES = 16_384
LARGEST_SUBMISSION_BYTES = 512 * MIB


@dataclass(frozen=True, slots=True)
class BoxImage:
    """What a box takes from its image and profile; the same for all boxes of a profile."""

    image_id: str
    """Of the image with the supervisor in it."""
    volumes: tuple[str, ...] = ()
    """The image's VOLUME paths: each would be writable host disk, so each is covered."""
    variables: tuple[str, ...] = ()
    """Names of the image's environment variables: each is removed."""
    cpus: int = 1
    executable_folders: tuple[str, ...] = ()
    runtime: str | None = None


@dataclass(frozen=True, slots=True)
class BoxPolicy:
    """What one box may use."""

    image: BoxImage
    memory_bytes: int
    """The program's limit; the box gets `headroom_bytes` more."""
    processes: int
    disk_bytes: int
    files: int
    output_bytes: int = 16 * MIB
    """How much output is buffered inside, at most: the limits of stdout and what is kept of stderr."""
    cpu_set: str | None = None
    """CPUs that the box is bound to, such as `1` or `0,1`; None: a share of all of them."""
    idle_s: int = 300
    """The box ends when nothing was asked of it for so long."""
    lifetime_s: int = 6 * 3600
    by_podman: bool = False
    """Podman makes the box. It takes no limit of the number of files, and puts writable folders of its own into a
    read-only root, which are covered."""

    @property
    def headroom_bytes(self) -> int:
        """What the box has beyond the program's memory limit, for the supervisor and its buffers."""
        return SUPERVISOR_MEMORY_BYTES + STDIN_BUFFER_BYTES + self.output_bytes

    @property
    def box_memory_bytes(self) -> int:
        """The hard limit of the box, in whole pages."""
        return -(-(self.memory_bytes + self.headroom_bytes) // 4096) * 4096

    @property
    def box_memory_and_swap_bytes(self) -> int:
        """The limit of memory and swap together: a little above the memory limit.

        Were they equal, cgroup v1 would hit this one first, and newer kernels do not count that: nothing would tell an
        out-of-memory of the box's own from the host's.
        """
        return self.box_memory_bytes + SWAP_MARGIN_BYTES

    @property
    def box_processes(self) -> int:
        """The pids limit of the box."""
        return self.processes + SUPERVISOR_PROCESSES


@dataclass(frozen=True, slots=True)
class FolderInMemory:
    """A tmpfs of a box."""

    path: str
    size_bytes: int
    inodes: int
    mode: str
    executable: bool

    @property
    def options(self) -> str:
        """Its mount options."""
        execution = "exec" if self.executable else "noexec"
        return f"rw,nosuid,nodev,{execution},size={self.size_bytes},nr_inodes={self.inodes},mode={self.mode}"


def folders_in_memory(policy: BoxPolicy) -> tuple[FolderInMemory, ...]:
    """The writable places of a box. Together they stay below the memory limit: a full disk is an error before it is
    an out-of-memory. `/work` gets at most 3/8 of the memory, `/submission` 1/4, `/tmp` and `/dev/shm` 1/8 each."""
    memory, disk = policy.memory_bytes, policy.disk_bytes

    def folder(path: str, size: int, inodes: int, mode: str) -> FolderInMemory:
        executable = path == "/submission" or path in policy.image.executable_folders
        return FolderInMemory(path, max(4096, size // 4096 * 4096), inodes, mode, executable)

    return (
        folder("/submission", min(LARGEST_SUBMISSION_BYTES, memory // 4), SUBMISSION_INODES, "755"),
        folder("/work", min(disk, memory * 3 // 8), policy.files, "700"),
        folder("/tmp", min(disk, memory // 8), policy.files, "1777"),
        folder("/dev/shm", min(disk, memory // 8), min(policy.files, SHARED_MEMORY_INODES), "1777"),
    )


def container_config(policy: BoxPolicy, labels: Mapping[str, str]) -> dict[str, object]:
    """The body of the engine's create request: everything is said, nothing is left to a default of image or engine."""
    return {
        "Image": policy.image.image_id,
        "Entrypoint": [SUPERVISOR_PATH],
        "Cmd": ["--idle-s", str(policy.idle_s), "--lifetime-s", str(policy.lifetime_s)],
        "Healthcheck": {"Test": ["NONE"]},
        # A name without a value takes the image's variable away.
        "Env": [name for name in sorted(policy.image.variables) if name not in {"PATH", "HOME", "HOSTNAME"}],
        "User": "0:0",
        "WorkingDir": "/",
        "Hostname": HOST_NAME,
        "Domainname": "",
        "Labels": dict(labels),
        "Tty": False,
        "OpenStdin": True,
        # Once the client's stream is gone, so is stdin, and with it the box: also when the client was killed.
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "StopSignal": "SIGTERM",
        "StopTimeout": 2,
        "NetworkDisabled": True,
        "HostConfig": _host_config(policy),
    }


def _host_config(policy: BoxPolicy) -> dict[str, object]:
    host: dict[str, object] = {
        "NetworkMode": "none",
        "ReadonlyRootfs": True,
        "Privileged": False,
        "CapDrop": ["ALL"],
        "CapAdd": list(CAPABILITIES),
        "SecurityOpt": ["no-new-privileges:true"],
        "IpcMode": "none",
        "PidMode": "",
        "UTSMode": "",
        "Binds": [],
        "Mounts": [],
        "Devices": [],
        "LogConfig": {"Type": "none", "Config": {}},
        "AutoRemove": True,
        "RestartPolicy": {"Name": "no"},
        "Init": False,
        "Tmpfs": _tmpfs(policy),
        "Memory": policy.box_memory_bytes,
        "MemorySwap": policy.box_memory_and_swap_bytes,
        "PidsLimit": policy.box_processes,
        "OomKillDisable": False,
        "Sysctls": dict(SYSCTLS),
        "Ulimits": [{"Name": name, "Soft": value, "Hard": value} for name, value in _ulimits(policy).items()],
        "MaskedPaths": list(MASKED_PATHS),
        "ReadonlyPaths": list(READ_ONLY_PATHS),
    }
    if policy.cpu_set is not None:
        host["CpusetCpus"] = policy.cpu_set
    else:
        host["NanoCpus"] = policy.image.cpus * 10**9
    if policy.image.runtime is not None:
        host["Runtime"] = policy.image.runtime
    return host


def _ulimits(policy: BoxPolicy) -> dict[str, int]:
    limits = {"core": 0, "msgqueue": 0, "memlock": 0, "nofile": SUPERVISOR_OPEN_FILES}
    # Podman's own default is above what its container may set, and then no container starts.
    return {**limits, "nproc": policy.box_processes} if policy.by_podman else limits


def _tmpfs(policy: BoxPolicy) -> dict[str, str]:
    covered = (*policy.image.volumes, *(PODMANS_OWN_FOLDERS if policy.by_podman else ()))
    covers = dict.fromkeys(covered, "ro,nosuid,nodev,noexec,size=4096,nr_inodes=1,mode=555")
    folders = {**covers, **{folder.path: folder.options for folder in folders_in_memory(policy)}}
    if policy.by_podman:
        folders = {path: re.sub("nr_inodes=[0-9]+,", "", options) for path, options in folders.items()}
    return folders
