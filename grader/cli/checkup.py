"""The checks of `grader doctor`: the machine, the engine, the images, and what a real box really enforces."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import psutil

from grader.cli import sandboxes
from grader.errors import GraderError, PrerequisiteError
from grader.runner.programs import image_of, image_source
from grader.runtimes import LoadedProfile, data_folder, load_profiles
from grader.sandbox.bench import Bench
from grader.sandbox.contract import CHECKS, run_checks
from grader.sandbox.docker.engine import Engine
from grader.sandbox.docker.engine_facts import EngineFacts
from grader.sandbox.docker.images import ImageRecipe, Images
from grader.sandbox.docker.reaper import OWNED_LABEL

OLDEST_API = (1, 41)
"""Docker Engine 20.10: the oldest that grader is tested on."""
GOOD_DISK_BYTES = 3 * 2**30
LEAST_DISK_BYTES = 512 * 2**20
GOOD_MEMORY_BYTES = 2**30
BENCH_PROFILE = "bash"
"""The profile that the checks of a box run under: they need a POSIX shell and coreutils."""

Progress = Callable[[str], None]


class Level(IntEnum):
    """How bad a finding is."""

    OK = 0
    CAUTION = 1
    FAIL = 2

    @property
    def word(self) -> str:
        """The word that it is shown by."""
        return ("ok", "caution", "FAIL")[self]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, and what mends it."""

    level: Level
    what: str
    mend: str | None = None


async def check_up(runtimes: Path | None, *, quick: bool, progress: Progress) -> AsyncIterator[Finding]:
    """All checks, cheap ones first. Trouble is a finding, never an exception."""
    for finding in _machine():
        yield finding
    try:
        profiles = load_profiles(runtimes)
    except GraderError as error:
        yield _failed(error)
        profiles = ()
    try:
        engine = await Engine.connect()
    except PrerequisiteError as error:
        yield _failed(error)
        return
    try:
        async for finding in _engine(engine, profiles):
            yield finding
    except GraderError as error:
        yield _failed(error)
        return
    finally:
        await engine.close()
    if not quick:
        async for finding in _box(profiles, progress):
            yield finding


def engine_findings(facts: EngineFacts, address: str) -> Iterator[Finding]:
    """What the engine says of itself. Pure."""
    yield _of(
        _api(facts.api_version) >= OLDEST_API,
        f"{facts.name} {facts.version} (API {facts.api_version}, runc {facts.runc or 'unknown'}) at {address}",
        Level.FAIL,
        "install Docker Engine 20.10 or newer (scripts/setup-engine does it on Debian and Ubuntu)",
    )
    if address.startswith(("tcp://", "http://")):
        yield Finding(
            Level.FAIL,
            "the engine is reached over plain TCP: whoever reaches that port is root on its machine",
            "use the unix socket, or DOCKER_HOST=ssh://...",
        )
    yield _of(
        any("seccomp" in option for option in facts.security),
        "the engine filters system calls (seccomp)",
        Level.FAIL,
        "use an engine and a kernel with seccomp; without it a program reaches the whole kernel",
    )
    yield _of(
        facts.cgroup_version in {"1", "2"},
        f"limits through cgroup version {facts.cgroup_version or 'unknown'}",
        Level.FAIL,
        "mount cgroups on the engine's machine",
    )
    if any("rootless" in option for option in facts.security):
        yield Finding(Level.CAUTION, "the engine is rootless: some limits may be ignored (the checks below tell)")


def _machine() -> Iterator[Finding]:
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = psutil.virtual_memory()
    yield _of(
        memory.available >= GOOD_MEMORY_BYTES,
        f"{cpus} CPUs, {_gib(memory.available)} of {_gib(memory.total)} memory free",
        Level.CAUTION,
        "close what uses memory, or run less at the same time (-j 1)",
    )
    swap = psutil.swap_memory()
    yield _of(
        swap.used <= swap.total // 2,
        f"{_gib(swap.used)} of {_gib(swap.total)} swap in use",
        Level.CAUTION,
        "times will vary: close what uses memory",
    )
    yield governor_finding(_governors())
    for path in dict.fromkeys((_engine_disk(), Path.cwd())):
        free = shutil.disk_usage(path).free
        level = Level.FAIL if free < LEAST_DISK_BYTES else Level.CAUTION
        yield _of(free >= GOOD_DISK_BYTES, f"{_gib(free)} free on the disk of {path}", level, "make room there")


def governor_finding(governors: Collection[str]) -> Finding:
    """Whether the CPUs run at one speed. `governors`: those of all CPUs, none where the kernel sets no speed. Pure."""
    if not governors:
        return Finding(Level.OK, "the kernel does not change the speed of the CPUs (no frequency governor)")
    what = f"frequency governor of the CPUs: {', '.join(sorted(governors))}"
    mend = "CPU times vary with the speed: sudo cpupower frequency-set --governor performance"
    return _of(set(governors) <= {"performance"}, what, Level.CAUTION, mend)


def _governors() -> set[str]:
    found: set[str] = set()
    for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor"):
        with suppress(OSError):
            found.add(path.read_text(encoding="ascii", errors="replace").strip())
    return found


def _engine_disk() -> Path:
    usual = Path("/var/lib/docker")
    return usual if usual.is_dir() else Path("/")


async def _engine(engine: Engine, profiles: tuple[LoadedProfile, ...]) -> AsyncIterator[Finding]:
    for finding in engine_findings(await engine.facts(), engine.address):
        yield finding
    boxes = await engine.containers(OWNED_LABEL)
    yield _of(
        len(boxes) == 0,
        f"{len(boxes)} boxes of graders on the engine",
        Level.CAUTION,
        "if no other grader is running: grader clean",
    )
    images = Images(engine, data_folder("Dockerfiles"), lambda _: None)
    built: dict[str, bool] = {}
    for profile in profiles:
        built[profile.name] = await images.is_built(ImageRecipe.of(profile.name, image_source(profile)))
    for finding in image_findings(built):
        yield finding


def image_findings(built: Mapping[str, bool]) -> Iterator[Finding]:
    """Which profiles have their image. A missing one is no trouble: the first run that needs it builds it. Pure."""
    there = [name for name, is_there in built.items() if is_there]
    missing = [name for name, is_there in built.items() if not is_there]
    if there:
        yield Finding(Level.OK, f"images that are there: {', '.join(there)}")
    if missing:
        yield Finding(
            Level.OK, f"images that the first run builds, or grader runtimes build NAME: {', '.join(missing)}"
        )


async def _box(profiles: tuple[LoadedProfile, ...], progress: Progress) -> AsyncIterator[Finding]:
    """Runs the contract of every sandbox in a real box."""
    chosen = [profile for profile in profiles if profile.name == BENCH_PROFILE]
    if not chosen:
        yield Finding(Level.CAUTION, f"the limits of a box were not tried: there is no profile {BENCH_PROFILE}")
        return
    try:
        async with sandboxes.make_sandbox("submission", None) as sandbox:
            bench = Bench(sandbox, await image_of(chosen[0], sandbox, progress))
            async for finding in _contract(bench):
                yield finding
            for lacking in sandbox.facts.not_enforced:  # known once boxes were opened
                yield Finding(Level.CAUTION, f"this engine does not enforce: {lacking}", "use Docker Engine with runc")
    except GraderError as error:
        yield _failed(error)


async def _contract(bench: Bench) -> AsyncIterator[Finding]:
    mend = "this engine cannot be trusted with that; grader runtimes test shows whether programs still run"
    for number, check in enumerate(CHECKS):
        (result,) = await run_checks(bench, (check,))
        if result.broken is None:
            yield Finding(Level.OK, f"box: {check.holds}")
            continue
        yield Finding(Level.FAIL, f"box: {check.name} (it should hold that {check.holds}): {result.broken}", mend)
        if number == 0:  # not even a program that echoes its input runs: the others would say the same 24 times
            yield Finding(Level.CAUTION, f"{len(CHECKS) - 1} more checks of a box were not made", "mend the first")
            return


def _of(good: bool, what: str, otherwise: Level, mend: str) -> Finding:
    return Finding(Level.OK, what) if good else Finding(otherwise, what, mend)


def _failed(error: GraderError) -> Finding:
    place = f"{error.where}: " if error.where is not None else ""
    return Finding(Level.FAIL, place + error.message, error.hint)


def _api(version: str) -> tuple[int, ...]:
    parts = version.split(".")
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else (0,)


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
