"""The only way to the Docker engine: containers, images, events; our errors instead of the engine's.

Theory of operation
-------------------
Docker is the outer wall; inside it a small static supervisor, PID 1 of a *box*, starts, limits and cleans up every run
(`grader/sandbox/supervisor/PROTOCOL.md`). A fresh container costs a quarter of a second of the engine's CPU, `docker
exec` a quarter of that, a supervised run less than a millisecond. So containers are opened rarely and ahead, and
programs run in them by a protocol over the container's attached stdin and stdout.

1. *Create* with every option said (`policy.py`), by image id, with our labels: from then on the container can be found
   and removed by whoever comes next (`reaper.py`), whatever happens to us.
2. *Attach* before the start, so that nothing the supervisor writes is lost; then *start*.
3. The supervisor says what the box really is; a box that differs from its policy is refused (`assessment.py`).
4. The attached stream is the box's life line. `StdinOnce` makes the engine close the container's stdin when our end of
   the stream is gone, also after kill -9; the supervisor exits when its stdin ends; auto-remove does the rest. (docker-
   py's `detach=True` turns StdinOnce off, and the container would live for ever: nothing here uses it.) What
   auto-remove cannot remove is a container that was never started; the sweep does.
5. *Events* (subscribed before the first start) say whether a box that vanished was out of memory, killed from outside,
   or lost with the engine.

docker-py's low-level client is synchronous (`docker_py.py` is the only import of it): its calls run in threads, at most
`_THREADS` at once, each bounded twice, by the connection's time-out and by ours. A call that makes something is not
abandoned when the caller is cancelled: it is waited for (bounded), and what it made is removed, so that no container
comes to life that nobody knows.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import tarfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import ObjectSendStream

from grader.core.reasons import ReasonCode
from grader.errors import GraderError, PrerequisiteError, SandboxError
from grader.sandbox.docker.builds import REMOVED_WITHIN_S, Build, BuildRequest, Progress
from grader.sandbox.docker.docker_py import (
    NoSuchContainerError,
    connected_client,
    is_no_engine,
    own_stream,
    reason,
    translated,
    unless_conflict,
)
from grader.sandbox.docker.engine_facts import (
    ContainerEvent,
    ContainerFacts,
    ContainerState,
    EngineFacts,
    ImageFacts,
    container_event,
    container_facts,
    container_state,
    engine_facts,
    image_facts,
    listed_image,
)

_THREADS = 16
_ANSWER_WITHIN_S = 60.0
_PING_WITHIN_S = 10.0
_BUILD_WITHIN_S = 1800.0
_EVENTS_AHEAD = 10_000
LARGEST_EXTRACTED_FILE_BYTES = 64 * 2**20
START_HINT = "start the engine (scripts/setup-engine installs and starts one on Debian and Ubuntu), or set DOCKER_HOST"

GROUP_HINT = "become a member of its group: sudo usermod -aG docker $USER, and log in again"

T = TypeVar("T")


class Engine:
    """One engine. Make it with `await Engine.connect()`; calls may come from any task at the same time.

    Every method raises SandboxError (`engine.unreachable`, `image.missing`, `host.disk_full`, `box.lost`) for what the
    engine refuses or fails at.
    """

    def __init__(self, client: Any, address: str) -> None:
        self._client = client
        self.address = address
        """Where the engine is, such as `unix:///var/run/docker.sock`."""
        self._limiter = anyio.CapacityLimiter(_THREADS)

    @classmethod
    async def connect(cls, address: str | None = None) -> Engine:
        """Connect to the engine at `address`, else DOCKER_HOST, else the usual socket.

        Raises PrerequisiteError (`engine.unreachable`) if none answers.
        """
        where = address or os.environ.get("DOCKER_HOST") or _usual_address()
        try:
            with anyio.fail_after(_PING_WITHIN_S):
                client = await anyio.to_thread.run_sync(
                    connected_client, where, _PING_WITHIN_S, _ANSWER_WITHIN_S, abandon_on_cancel=True
                )
        except Exception as error:
            if not is_no_engine(error):
                raise
            raise PrerequisiteError(
                f"no Docker engine answers at {where}: {reason(error)}",
                code=ReasonCode.ENGINE_UNREACHABLE,
                hint=GROUP_HINT if isinstance(error, PermissionError) else START_HINT,
            ) from error
        return cls(client, where)

    async def close(self) -> None:
        """Give up the connections. Containers are not touched."""
        await anyio.to_thread.run_sync(self._client.close)

    async def ping(self) -> bool:
        """Whether the engine answers, within ten seconds. Never raises."""
        try:
            await self._call("ask whether the engine is there", lambda client: client.ping(), within_s=_PING_WITHIN_S)
        except SandboxError:
            return False
        return True

    async def facts(self) -> EngineFacts:
        """Versions, cgroup version, CPUs and clock of the engine."""
        info, version = await self._call("ask for its facts", lambda client: (client.info(), client.version()))
        return engine_facts(info, version)

    # ---- containers -------------------------------------------------------------------------------------------------

    async def create(self, config: Mapping[str, object], name: str | None = None) -> str:
        """Create a container; its id. If the caller is cancelled meanwhile, the container is removed again."""
        container_id = ""
        with anyio.CancelScope(shield=True):
            made = await self._call(
                "create a container", lambda client: client.create_container_from_config(dict(config), name)
            )
            container_id = str(made["Id"])
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()
        except BaseException:
            with anyio.CancelScope(shield=True), suppress(SandboxError):
                await self.remove(container_id)
            raise
        return container_id

    async def attach(self, container_id: str) -> Any:
        """The stream over stdin, stdout and stderr of a container that was not started yet.

        A plain socket where the engine is behind one, else an object with `recv`, `sendall` and `close` that block.
        What it reads is framed by the engine (connection.py takes the frames off). The caller owns it.
        """
        params = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        return await self._call(
            "attach to a container", lambda client: own_stream(client.attach_socket(container_id, params))
        )

    async def start(self, container_id: str) -> None:
        """Start a container."""
        await self._call("start a container", lambda client: client.start(container_id))

    async def state(self, container_id: str) -> ContainerState | None:
        """The state of a container; None if there is no such container any more."""
        try:
            found = await self._call("look at a container", lambda client: client.inspect_container(container_id))
        except NoSuchContainerError:
            return None
        return container_state(found)

    async def kill(self, container_id: str) -> None:
        """Kill a container. Nothing happens if it is not running, or gone."""
        with suppress(NoSuchContainerError):
            await self._call("kill a container", lambda client: unless_conflict(client.kill, container_id))

    async def remove(self, container_id: str) -> None:
        """Kill and remove a container with its anonymous volumes. Nothing happens if it is gone, or on its way out."""
        with suppress(NoSuchContainerError):
            await self._call(
                "remove a container",
                lambda client: unless_conflict(client.remove_container, container_id, v=True, force=True),
            )

    async def containers(self, label: str) -> tuple[ContainerFacts, ...]:
        """All containers with a label (`name` or `name=value`), whatever their state."""
        listed = await self._call(
            "list containers", lambda client: client.containers(all=True, filters={"label": [label]})
        )
        return tuple(container_facts(entry) for entry in listed)

    @asynccontextmanager
    async def events(self, label: str) -> AsyncGenerator[AsyncIterator[ContainerEvent]]:
        """What happens to containers with a label, from the entering of the context on. Ends if the engine does."""
        filters = {"type": ["container"], "label": [label]}
        stream = await self._call("listen to events", lambda client: client.events(decode=True, filters=filters))
        send, receive = anyio.create_memory_object_stream[ContainerEvent](_EVENTS_AHEAD)
        async with anyio.create_task_group() as group:
            group.start_soon(self._pump_events, stream, send)
            try:
                async with receive:
                    yield receive
            finally:
                group.cancel_scope.cancel()
                with suppress(Exception):  # it is closed by the engine, or by us; both are the end
                    stream.close()

    async def _pump_events(self, stream: Any, send: ObjectSendStream[ContainerEvent]) -> None:
        def pump() -> None:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError, ValueError, AttributeError):
                for event in stream:
                    anyio.from_thread.run(send.send, container_event(event))

        async with send:
            # Not of the shared threads: this one is busy as long as the sandbox is open.
            await anyio.to_thread.run_sync(pump, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))

    # ---- images -----------------------------------------------------------------------------------------------------

    async def image(self, reference: str) -> ImageFacts | None:
        """The image with this id, tag or digest; None if the engine does not have it."""
        try:
            found = await self._call("look at an image", lambda client: client.inspect_image(reference))
        except SandboxError as error:
            if error.code == ReasonCode.IMAGE_MISSING:
                return None
            raise
        return image_facts(found)

    async def images(self, label: str) -> tuple[ImageFacts, ...]:
        """All images with a label (`name` or `name=value`). Volumes and variables are left out."""
        listed = await self._call("list images", lambda client: client.images(filters={"label": [label]}))
        return tuple(listed_image(entry) for entry in listed)

    async def build(self, request: BuildRequest, progress: Progress) -> str:
        """Build an image from a context; its id. What a failed build left is removed.

        Raises SandboxError `image.missing` with the last lines of the build if it fails.
        """
        running = Build(request, progress, _BUILD_WITHIN_S)
        building = asyncio.create_task(self._call("build an image", running.run, within_s=_BUILD_WITHIN_S))
        try:
            return await asyncio.shield(building)
        except BaseException:
            with anyio.CancelScope(shield=True):
                running.stop()
                await asyncio.wait([building], timeout=REMOVED_WITHIN_S + 5)
            building.cancel()
            raise

    async def import_image(self, archive: Path, tag: str, labels: Mapping[str, str]) -> str:
        """Make an image of a tar archive of a root file system; its id."""
        changes = [f"LABEL {json.dumps(name)}={json.dumps(value)}" for name, value in labels.items()]
        repository, _, version = tag.rpartition(":")
        said = await self._call(
            "import an image",
            lambda client: client.import_image(
                str(archive), repository=repository, tag=version, changes=[*changes, 'CMD ["/bin/sh"]']
            ),
            within_s=_BUILD_WITHIN_S,
        )
        image_id = ""
        for line in str(said).splitlines():
            answer = json.loads(line)
            if "error" in answer:
                raise SandboxError(f"the image could not be imported: {answer['error']}", code=ReasonCode.IMAGE_MISSING)
            image_id = str(answer.get("status", ""))
        found = await self.image(tag)
        if found is None:  # podman takes the repository and passes over the tag
            found = await self.image(image_id)
            if found is None:
                raise SandboxError(f"the engine imported {tag} and does not have it", code=ReasonCode.IMAGE_MISSING)
            await self.tag(found.image_id, tag)
        return found.image_id

    async def pull(self, reference: str, progress: Progress) -> None:
        """Get an image from its registry. Raises SandboxError `image.missing` if that is not possible."""
        progress(f"pulling {reference}")

        def pull(client: Any) -> None:
            for answer in client.pull(reference, stream=True, decode=True):
                if "error" in answer:
                    raise SandboxError(f"{reference}: {answer['error']}", code=ReasonCode.IMAGE_MISSING)

        await self._call("pull an image", pull, within_s=_BUILD_WITHIN_S)

    async def tag(self, image_id: str, tag: str) -> None:
        """Give an image a tag."""
        repository, _, version = tag.rpartition(":")
        await self._call("tag an image", lambda client: client.tag(image_id, repository, version))

    async def remove_image(self, reference: str) -> None:
        """Remove a tag, and the image if it was the last; nothing happens if it is gone or in use."""
        try:
            await self._call("remove an image", lambda client: unless_conflict(client.remove_image, reference))
        except SandboxError as error:
            if error.code != ReasonCode.IMAGE_MISSING:
                raise

    async def file_of_image(self, image_id: str, path: str, labels: Mapping[str, str]) -> bytes:
        """The bytes of one regular file of an image, at most 64 MiB."""
        config = {
            "Image": image_id,
            "Entrypoint": ["/none"],
            "Cmd": [],
            "Labels": dict(labels),
            "NetworkDisabled": True,
        }
        container_id = await self.create(config)
        try:
            return await self._call("read a file", lambda client: _only_file(client.get_archive(container_id, path)[0]))
        finally:
            with anyio.CancelScope(shield=True), suppress(SandboxError):
                await self.remove(container_id)

    # ---- inside -----------------------------------------------------------------------------------------------------

    async def _call(self, doing: str, work: Callable[[Any], T], *, within_s: float = _ANSWER_WITHIN_S) -> T:
        """Run `work` in a thread. Bounded; the engine's errors become ours."""
        try:
            with anyio.fail_after(within_s + 1):
                return await anyio.to_thread.run_sync(work, self._client, abandon_on_cancel=True, limiter=self._limiter)
        except TimeoutError as error:
            raise SandboxError(
                f"the engine did not {doing} within {within_s:g} s", code=ReasonCode.ENGINE_UNREACHABLE
            ) from error
        except GraderError:
            raise
        except Exception as error:
            ours = translated(error, doing)
            if ours is None:
                raise
            raise ours from error


def _usual_address() -> str:
    """The system's socket, else that of a rootless engine of this user if it is there."""
    rootless = f"{os.environ.get('XDG_RUNTIME_DIR', '/nowhere')}/docker.sock"
    if not os.path.exists("/var/run/docker.sock") and os.path.exists(rootless):
        return f"unix://{rootless}"
    return "unix:///var/run/docker.sock"


def _only_file(chunks: Iterator[bytes]) -> bytes:
    buffer = io.BytesIO()
    for chunk in chunks:
        buffer.write(chunk)
        if buffer.tell() > LARGEST_EXTRACTED_FILE_BYTES:
            raise SandboxError("the file is larger than 64 MiB")
    buffer.seek(0)
    with tarfile.open(fileobj=buffer) as archive:
        for entry in archive:
            content = archive.extractfile(entry) if entry.isreg() else None
            if content is not None:
                return content.read()
    raise SandboxError("it is no regular file")
