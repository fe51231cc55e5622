"""The sandbox on a Docker engine: wires engine, images, slots, pool and seats together. It decides nothing itself."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import cast

import anyio

from grader.core.reasons import ReasonCode, ReasonKind
from grader.errors import PrerequisiteError, SandboxError
from grader.sandbox.base import Facts, Failed, ImageSource, Isolation, Program, Sandbox, Seat
from grader.sandbox.docker.box import Box, BoxHost
from grader.sandbox.docker.box_runs import BoxKind, NoBoxError
from grader.sandbox.docker.engine import Engine
from grader.sandbox.docker.engine_facts import EngineFacts
from grader.sandbox.docker.events import EventLog
from grader.sandbox.docker.images import ImageRecipe, Images, RuntimeImage
from grader.sandbox.docker.locks import IMAGES, held_lock
from grader.sandbox.docker.losses import LossBudget
from grader.sandbox.docker.policy import BoxPolicy
from grader.sandbox.docker.pool import Pool, PoolLimits
from grader.sandbox.docker.reaper import Owner, sweep
from grader.sandbox.docker.seat import CompileCache, DockerSeat, SeatBox, SeatServices
from grader.sandbox.docker.slots import Slots, runtime_directory

SESSION_LABEL = "grader.session"
BOX_LIFETIME_S = 6 * 3600
_IMAGES_FREE_WITHIN_S = 600.0
"""How long another grader may take to remove images before we give up."""
_END_WITHIN_S = 60.0
_GONE_WITHIN_S = 20.0
_LOOK_EVERY_S = 0.03


class DockerSandbox:
    """Executes programs in boxes on a Docker engine; an async context manager, for asyncio.

    `isolation`: see `Isolation`. `max_parallel`: how many boxes are opened at once, by default one a CPU; never more
    runs than CPUs go on at a time, whatever it says. `engine`: the engine's address, by default `DOCKER_HOST` or the
    usual socket. `dockerfiles`: the folder with the Dockerfiles of base and supervisor, by default the package's own.
    """

    def __init__(
        self,
        *,
        isolation: Isolation = "submission",
        max_parallel: int | None = None,
        engine: str | None = None,
        dockerfiles: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._isolation: Isolation = isolation
        self._max_parallel = max_parallel
        self._address = engine
        self._dockerfiles = dockerfiles if dockerfiles is not None else _own_dockerfiles()
        self._environment = environment if environment is not None else os.environ
        self._stack = AsyncExitStack()
        self._opened: _Opened | None = None

    @property
    def facts(self) -> Facts:
        """Engine, host, and what could not be enforced in the boxes opened so far."""
        return self._open().facts

    async def __aenter__(self) -> Sandbox:
        """Connect, remove what dead graders left, and listen to events. Raises PrerequisiteError."""
        stack = AsyncExitStack()
        try:
            engine = await Engine.connect(self._address)
            stack.push_async_callback(engine.close)
            self._opened = await self._wire(engine, stack)
        except SandboxError as error:
            await stack.aclose()
            raise PrerequisiteError(f"the engine cannot be used: {error.message}", code=error.code) from error
        except BaseException:
            with anyio.CancelScope(shield=True):
                await stack.aclose()
            raise
        self._stack = stack
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Remove every box. Bounded, and not to be stopped by a cancellation."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(_END_WITHIN_S):
            await self._stack.aclose()
        self._opened = None

    async def image(self, source: ImageSource, progress: Callable[[str], None]) -> str:
        """The id of a profile's image, built now if it is not there. Raises PrerequisiteError."""
        opened = self._open()
        name = source.folder.name if source.folder is not None else (source.reference or "").partition("@")[0]
        image = await Images(opened.host.engine, self._dockerfiles, progress).runtime(ImageRecipe.of(name, source))
        opened.know(image)
        return image.image_id

    @asynccontextmanager
    async def prepare(self, program: Program) -> AsyncGenerator[Seat | Failed]:
        """A seat for a submission, compiled; see `Sandbox`."""
        seat = DockerSeat(program, self._open().services)
        try:
            failed = await seat.prepare()
            yield failed if failed is not None else seat
            seat.leave()
        finally:
            seat.abandon()

    def _open(self) -> _Opened:
        if self._opened is None:
            raise RuntimeError("the sandbox is not open: use it as `async with`")
        return self._opened

    async def _wire(self, engine: Engine, stack: AsyncExitStack) -> _Opened:
        engine_facts = await engine.facts()
        # Whoever removes images asks for this lock first: none may go between two boxes, or between two builds.
        await stack.enter_async_context(held_lock(IMAGES, at_most_s=_IMAGES_FREE_WITHIN_S, is_shared=True))
        owner = Owner.current()
        await sweep(engine, owner)
        slots = stack.enter_context(Slots(self._cpus(engine, engine_facts), runtime_directory(self._environment)))
        session = f"{SESSION_LABEL}={secrets.token_hex(8)}"
        events = EventLog(engine, session)
        stack.push_async_callback(events.stop)
        await events.watch()
        labels = {**owner.labels(BOX_LIFETIME_S), SESSION_LABEL: session.partition("=")[2]}
        stack.push_async_callback(_remove_all, engine, session)
        boxes = _Boxes(self, BoxHost(engine, events, labels), slots, by_podman=engine_facts.is_podman)
        at_once = self._max_parallel if self._max_parallel is not None else len(slots.cpus)
        limits = PoolLimits(idle=at_once, openings_at_once=min(at_once, len(slots.cpus)))
        pool: Pool[BoxKind, Box] = Pool(boxes.open, limits)
        stack.push_async_callback(pool.close)
        source = _Source(pool, opens_ahead=self._isolation != "shared")
        services = SeatServices(self._isolation, source, slots.held, LossBudget(), CompileCache())
        return _Opened(boxes, engine_facts, services)

    def _cpus(self, engine: Engine, facts: EngineFacts) -> list[int]:
        """The CPUs to use, by the engine's numbers: those of this process where the engine is on this machine."""
        there = set(range(facts.cpus or 1))
        if not engine.address.startswith("unix:"):
            return sorted(there)
        return sorted(there & os.sched_getaffinity(0)) or sorted(there)

    async def box_image(self, image_id: str) -> RuntimeImage:
        """The image for the boxes of a profile's image: known from `image`, or found (with the supervisor added) now.

        Raises PrerequisiteError, SandboxError.
        """
        opened = self._open()
        known = opened.images.get(image_id)
        if known is None:
            if await opened.host.engine.image(image_id) is None:
                raise PrerequisiteError(f"the engine has no image {image_id}", code=ReasonCode.IMAGE_MISSING)
            recipe = ImageRecipe(image_id.removeprefix("sha256:")[:12], reference=image_id)
            known = await Images(opened.host.engine, self._dockerfiles, lambda _: None).runtime(recipe)
            opened.know(known)
        return known


class _Opened:
    """What a sandbox has while it is open."""

    def __init__(self, boxes: _Boxes, engine_facts: EngineFacts, services: SeatServices) -> None:
        self.host = boxes.host
        self.services = services
        self.images: dict[str, RuntimeImage] = {}
        self._boxes = boxes
        self._engine_facts = engine_facts

    def know(self, image: RuntimeImage) -> None:
        """Remember which image the boxes of a profile's image run."""
        self.images[image.image_id] = image

    @property
    def facts(self) -> Facts:
        engine = self._engine_facts
        supervisors = sorted({image.supervisor_sha256 for image in self.images.values()})
        host = {
            "engine": f"{engine.name} {engine.version}",
            "engine_api": engine.api_version,
            "runc": engine.runc,
            "kernel": engine.kernel,
            "architecture": engine.architecture,
            "cgroup_version": engine.cgroup_version,
            "cpus": str(engine.cpus or ""),
            "supervisor_sha256": " ".join(supervisors),
        }
        known = {name: value for name, value in host.items() if value}
        return Facts(known, tuple(sorted(self._boxes.not_enforced)))


class _Boxes:
    """Opens boxes for the pool."""

    def __init__(self, sandbox: DockerSandbox, host: BoxHost, slots: Slots, *, by_podman: bool) -> None:
        self.host = host
        self._by_podman = by_podman
        self.not_enforced: set[str] = set()
        self._sandbox = sandbox
        self._slots = slots

    async def open(self, kind: BoxKind) -> Box:
        """A new box of this kind. Raises NoBoxError."""
        try:
            image = await self._sandbox.box_image(kind.image_id)
        except (PrerequisiteError, SandboxError) as error:
            code = ReasonCode(error.code)
            code = code if code.kind is ReasonKind.MISSING else ReasonCode.IMAGE_MISSING
            retryable = code is ReasonCode.ENGINE_UNREACHABLE
            raise NoBoxError(Failed(code, error.message, retryable=retryable)) from error
        cpus = self._slots.choose(kind.cpus)
        if len(cpus) < kind.cpus:
            self.not_enforced.add(f"a box got {len(cpus)} CPUs, not {kind.cpus}: there are no more")
        policy = BoxPolicy(
            image=image.for_boxes(cpus=kind.cpus, executable_folders=kind.executable_folders, runtime=kind.runtime),
            memory_bytes=kind.memory_bytes,
            processes=kind.processes,
            disk_bytes=kind.disk_bytes,
            files=kind.files,
            output_bytes=kind.output_bytes,
            cpu_set=",".join(str(cpu) for cpu in cpus),
            lifetime_s=BOX_LIFETIME_S,
            by_podman=self._by_podman,
        )
        box = await Box.open(self.host, policy, cpus, lambda: self._slots.give_back(cpus))
        self.not_enforced.update(box.seen.not_enforced)
        return box


class _Source:
    """The pool as seats see it. A kind of box that is asked for again is opened ahead from then on."""

    def __init__(self, pool: Pool[BoxKind, Box], *, opens_ahead: bool) -> None:
        self._pool = pool
        self._opens_ahead = opens_ahead
        self._claims: Counter[BoxKind] = Counter()

    async def claim(self, kind: BoxKind) -> SeatBox:
        box = await self._pool.claim(kind)
        self._claims[kind] += 1
        if self._opens_ahead and self._claims[kind] > 1:
            self._pool.expect(kind)
        return box

    def give_back(self, kind: BoxKind, box: SeatBox) -> None:
        self._pool.give_back(kind, cast("Box", box))

    def discard(self, box: SeatBox) -> None:
        self._pool.discard(cast("Box", box))


async def _remove_all(engine: Engine, label: str) -> None:
    """A last look: whatever has our label and is still there. Returns when nothing is, or after a bounded time."""
    with suppress(SandboxError), anyio.move_on_after(_GONE_WITHIN_S):
        while left := await engine.containers(label):
            for container in left:
                await engine.remove(container.container_id)
            await anyio.sleep(_LOOK_EVERY_S)


def _own_dockerfiles() -> Path:
    """The Dockerfiles of the package, or of the checkout that it is run from."""
    package = Path(__file__).resolve().parents[2]
    installed = package / "_data" / "Dockerfiles"
    return installed if installed.is_dir() else package.parent / "Dockerfiles"
