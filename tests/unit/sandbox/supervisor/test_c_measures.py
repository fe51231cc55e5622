"""The supervisor's reading of cgroup counters, on files as kernels write them: v2 as recorded, v1, and none at all."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from .c_build import build

V2 = {
    "cgroup.controllers": "cpuset cpu io memory pids\n",
    "cpu.stat": (
        "usage_usec 123456789\nuser_usec 100000000\nsystem_usec 23456789\nnice_usec 0\n"
        "core_sched.force_idle_usec 0\nnr_periods 12\nnr_throttled 3\nthrottled_usec 4500\nnr_bursts 0\nburst_usec 0\n"
    ),
    "memory.current": "7340032\n",
    "memory.peak": "9437184\n",
    "memory.events": "low 0\nhigh 0\nmax 17\noom 2\noom_kill 1\noom_group_kill 0\n",
    "pids.current": "5\n",
}
V1 = {
    "cpuacct/cpuacct.usage": "123456789012\n",
    "cpu/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 77\n",
    "memory/memory.usage_in_bytes": "7340032\n",
    "memory/memory.max_usage_in_bytes": "9437184\n",
    "memory/memory.failcnt": "17\n",
    "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
    "pids/pids.current": "5\n",
}
SAME = {"memory": "7340032", "peak": "9437184", "oom_kills": "1", "tasks": "5"}


def measured(tmp_path: Path, files: dict[str, str]) -> dict[str, str]:
    for name, content in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    counters = run_harness(tmp_path)
    return {name: value for name, value in counters.items() if name not in {"idle", "steal"}}


def run_harness(tmp_path: Path) -> dict[str, str]:
    flags = (f'-DCGROUP="{tmp_path}/cgroup/"', f'-DPROC_STAT="{tmp_path}/stat"')
    harness = build(tmp_path / "measures", "harness_measures.c", ("measures.c",), *flags)
    done = subprocess.run([harness], capture_output=True, text=True, check=True, timeout=60)
    return dict(line.split(" ") for line in done.stdout.splitlines())


def test_version_2(tmp_path: Path) -> None:
    assert measured(tmp_path, V2) == SAME | {
        **{"version": "2", "cpu": "123456789000", "throttled": "4500000"},
        "hits": "19",  # max + oom: the limit was hit either way
    }


def test_version_1(tmp_path: Path) -> None:
    assert measured(tmp_path, V1) == SAME | {"version": "1", "cpu": "123456789012", "throttled": "77", "hits": "17"}


def test_an_old_kernel_has_no_peak_and_that_is_unknown_not_zero(tmp_path: Path) -> None:
    files = {name: content for name, content in V2.items() if name != "memory.peak"}
    files["memory.events"] = "low 0\nhigh 0\noom 2\n"  # neither max nor oom_kill
    counters = measured(tmp_path, files)
    assert counters["peak"] == counters["hits"] == counters["oom_kills"] == "unknown"
    assert counters["memory"] == "7340032"


@pytest.mark.parametrize("content", ["", "max\n", "-5\n", "99999999999999999999999\n"])
def test_nonsense_is_unknown(tmp_path: Path, content: str) -> None:
    assert measured(tmp_path, V2 | {"memory.current": content})["memory"] == "unknown"


def test_no_cgroup_at_all(tmp_path: Path) -> None:
    counters = measured(tmp_path, {})
    assert counters.pop("version") == "0"
    assert set(counters.values()) == {"unknown"}


def test_idle_and_steal_are_those_of_the_boxs_cpus(tmp_path: Path) -> None:
    ours = sorted(os.sched_getaffinity(0))
    lines = [f"cpu{cpu} 900 10 300 {7 + index} 2 5 5 {3 + index} 0 0" for index, cpu in enumerate(ours)]
    foreign = f"cpu{max(ours) + 1} 1 1 1 5000 5000 1 1 5000 0 0"
    stat = "\n".join(["cpu  9 9 9 9 9 9 9 9 0 0", *lines, foreign, "intr 5 6 7", ""])
    (tmp_path / "stat").write_text(stat)
    ticks = os.sysconf("SC_CLK_TCK")
    idle = sum(7 + index + 2 for index in range(len(ours)))
    steal = sum(3 + index for index in range(len(ours)))
    counters = run_harness(tmp_path)
    assert counters["idle"] == str(idle * (1_000_000_000 // ticks))
    assert counters["steal"] == str(steal * (1_000_000_000 // ticks))


@pytest.mark.parametrize("line", ["0 0 0 0 0 0 0 0 0 0", ""])
def test_a_machine_that_tells_nothing_is_unknown(tmp_path: Path, line: str) -> None:
    (tmp_path / "stat").write_text("".join(f"cpu{cpu} {line}\n" for cpu in sorted(os.sched_getaffinity(0))))
    counters = run_harness(tmp_path)
    assert counters["idle"] == counters["steal"] == "unknown"
