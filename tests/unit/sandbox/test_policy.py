"""Every option of a box's container is asked for: a test each, so that none is lost unseen."""

from __future__ import annotations

from typing import Any, cast

import pytest

from grader.sandbox.docker.policy import (
    CAPABILITY_MASK,
    MIB,
    BoxImage,
    BoxPolicy,
    container_config,
    folders_in_memory,
)

IMAGE = BoxImage("sha256:abc", volumes=("/data",), variables=("LD_PRELOAD", "PATH"))
POLICY = BoxPolicy(IMAGE, memory_bytes=256 * MIB, processes=64, disk_bytes=64 * MIB, files=4096, cpu_set="1")


def config(policy: BoxPolicy = POLICY) -> dict[str, Any]:
    return cast("dict[str, Any]", container_config(policy, {"grader.owned": "1"}))


def host(policy: BoxPolicy = POLICY) -> dict[str, Any]:
    return config(policy)["HostConfig"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Image", "sha256:abc"),
        ("Entrypoint", ["/.grader/supervisor"]),
        ("Cmd", ["--idle-s", "300", "--lifetime-s", "21600"]),
        ("Healthcheck", {"Test": ["NONE"]}),
        ("User", "0:0"),
        ("WorkingDir", "/"),
        ("Hostname", "box"),
        ("Labels", {"grader.owned": "1"}),
        ("Tty", False),
        ("OpenStdin", True),
        ("StdinOnce", True),
        ("AttachStdin", True),
        ("AttachStdout", True),
        ("AttachStderr", True),
        ("StopSignal", "SIGTERM"),
        ("NetworkDisabled", True),
    ],
)
def test_container_options(name: str, value: object) -> None:
    assert config()[name] == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NetworkMode", "none"),
        ("ReadonlyRootfs", True),
        ("Privileged", False),
        ("CapDrop", ["ALL"]),
        ("CapAdd", ["CHOWN", "KILL", "SETGID", "SETUID"]),
        ("SecurityOpt", ["no-new-privileges:true"]),
        ("IpcMode", "none"),
        ("PidMode", ""),
        ("UTSMode", ""),
        ("Binds", []),
        ("Mounts", []),
        ("Devices", []),
        ("LogConfig", {"Type": "none", "Config": {}}),
        ("AutoRemove", True),
        ("RestartPolicy", {"Name": "no"}),
        ("Init", False),
        ("PidsLimit", 64 + 8),
        ("OomKillDisable", False),
        ("CpusetCpus", "1"),
        (
            "Sysctls",
            {
                "kernel.shmmni": "0",
                "kernel.msgmni": "0",
                "kernel.sem": "0 0 0 0",
                "fs.mqueue.queues_max": "0",
                "net.ipv4.tcp_max_tw_buckets": "0",
            },
        ),
    ],
)
def test_host_options(name: str, value: object) -> None:
    assert host()[name] == value


def test_the_seccomp_profile_is_the_engines_own() -> None:
    assert not any("seccomp" in option or "apparmor" in option for option in host()["SecurityOpt"])


def test_memory_has_no_swap_and_a_fixed_headroom_beyond_the_programs_limit() -> None:
    assert host()["Memory"] == (256 + 16 + 16 + 16) * MIB
    # Not equal: at the same limit, newer kernels would not count that it was hit.
    assert host()["MemorySwap"] == (256 + 16 + 16 + 16 + 1) * MIB
    odd = BoxPolicy(IMAGE, memory_bytes=100 * MIB + 1, processes=1, disk_bytes=MIB, files=1)
    assert odd.box_memory_bytes % 4096 == 0
    assert odd.box_memory_bytes >= odd.memory_bytes + odd.headroom_bytes


def test_ulimits_are_explicit() -> None:
    limits = {entry["Name"]: (entry["Soft"], entry["Hard"]) for entry in host()["Ulimits"]}
    assert limits == {"core": (0, 0), "msgqueue": (0, 0), "memlock": (0, 0), "nofile": (4096, 4096)}


def test_masked_paths_have_the_engines_own_and_proc_pressure() -> None:
    masked = set(host()["MaskedPaths"])
    assert {"/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware", "/proc/scsi", "/proc/acpi"} <= masked
    assert "/proc/pressure" in masked
    assert "/proc/sys" in host()["ReadonlyPaths"]


def test_writable_places_are_bounded_and_flagged() -> None:
    assert host()["Tmpfs"] == {
        "/data": "ro,nosuid,nodev,noexec,size=4096,nr_inodes=1,mode=555",
        "/submission": f"rw,nosuid,nodev,exec,size={64 * MIB},nr_inodes=16384,mode=755",
        "/work": f"rw,nosuid,nodev,noexec,size={64 * MIB},nr_inodes=4096,mode=700",
        "/tmp": f"rw,nosuid,nodev,noexec,size={32 * MIB},nr_inodes=4096,mode=1777",
        "/dev/shm": f"rw,nosuid,nodev,noexec,size={32 * MIB},nr_inodes=512,mode=1777",
    }


def test_an_image_volume_cannot_open_a_writable_place_of_ours() -> None:
    image = BoxImage("sha256:abc", volumes=("/work", "/var/lib/x"))
    tmpfs = host(BoxPolicy(image, 64 * MIB, 8, MIB, 16))["Tmpfs"]
    assert tmpfs["/work"].startswith("rw,nosuid,nodev,noexec")
    assert tmpfs["/var/lib/x"].startswith("ro,")


def test_podman_gets_what_it_takes_and_its_own_writable_folders_are_covered() -> None:
    podman = host(BoxPolicy(BoxImage("sha256:abc"), 256 * MIB, 8, MIB, 16, by_podman=True))
    assert "nr_inodes" not in str(podman["Tmpfs"])
    assert podman["Tmpfs"]["/run"] == podman["Tmpfs"]["/var/tmp"] == "ro,nosuid,nodev,noexec,size=4096,mode=555"
    assert {entry["Name"]: entry["Hard"] for entry in podman["Ulimits"]}["nproc"] == 16
    assert "/run" not in host()["Tmpfs"]


@pytest.mark.parametrize("memory_bytes", [MIB, 64 * MIB, 256 * MIB, 4096 * MIB])
@pytest.mark.parametrize("disk_bytes", [4096, 64 * MIB, 100_000 * MIB])
def test_a_full_disk_is_an_error_before_it_is_out_of_memory(memory_bytes: int, disk_bytes: int) -> None:
    policy = BoxPolicy(IMAGE, memory_bytes, 64, disk_bytes, 4096)
    assert sum(folder.size_bytes for folder in folders_in_memory(policy)) < memory_bytes


def test_what_a_profile_asks_for() -> None:
    image = BoxImage("sha256:abc", cpus=2, executable_folders=("/tmp",), runtime="runsc")
    policy = BoxPolicy(image, 256 * MIB, 64, 64 * MIB, 4096)
    assert host(policy)["Runtime"] == "runsc"
    assert host(policy)["NanoCpus"] == 2 * 10**9
    assert "CpusetCpus" not in host(policy)
    assert ",exec," in host(policy)["Tmpfs"]["/tmp"]
    assert ",noexec," in host(policy)["Tmpfs"]["/work"]
    assert "Runtime" not in host()


def test_the_images_variables_are_taken_away_and_none_is_given() -> None:
    assert config()["Env"] == ["LD_PRELOAD"]


def test_the_capability_mask_is_that_of_the_names() -> None:
    bits = {"CHOWN": 0, "KILL": 5, "SETGID": 6, "SETUID": 7}  # include/uapi/linux/capability.h
    assert sum(1 << bits[name] for name in host()["CapAdd"]) == CAPABILITY_MASK
