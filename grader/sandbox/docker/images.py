"""The images that boxes run: Debian, the base, a runtime's own, its packages, and the supervisor on top.

Each image is built once and found again by its content key: the digest of everything it is made of, kept in a label.
Everything runs by image id. Where no registry answers, Debian is made here with mmdebstrap (or debootstrap) and
imported. Two graders that need the same image build it one after the other, and the second finds it.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio

from grader.core.canonical import digest
from grader.core.reasons import ReasonCode
from grader.errors import PrerequisiteError, SandboxError
from grader.sandbox.base import ImageSource
from grader.sandbox.docker.builds import BuildRequest, Progress, context_archive
from grader.sandbox.docker.debian import DEBIAN_IMAGE, SUITE, make_debian
from grader.sandbox.docker.engine import Engine
from grader.sandbox.docker.engine_facts import ImageFacts
from grader.sandbox.docker.locks import held_lock
from grader.sandbox.docker.policy import SUPERVISOR_PATH, BoxImage
from grader.sandbox.docker.reaper import Owner

KIND_LABEL = "grader.image"
KEY_LABEL = "grader.content-key"
SUPERVISOR_LABEL = "grader.supervisor-sha256"
_CERTIFICATES = "/tmp/grader-certificates.pem"
_PULL_WITHIN_S = 300.0
_BUILD_LIFETIME_S = 3600.0
_LARGEST_CONTEXT_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class ImageRecipe:
    """What a profile says of its image."""

    name: str
    """For tags and messages."""
    folder: Path | None = None
    """The folder with the Dockerfile; None if an image is named by digest."""
    reference: str | None = None
    debian: tuple[str, ...] = ()
    pypi: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, source: ImageSource) -> ImageRecipe:
        """The recipe for where a profile's image comes from."""
        return cls(name, source.folder, source.reference, source.debian_packages, source.pypi_packages)


@dataclass(frozen=True, slots=True)
class RuntimeImage:
    """A runtime's image, and the one with the supervisor in it that boxes run."""

    name: str
    image_id: str
    """Of the runtime: what a profile's fingerprint is over."""
    box_image_id: str
    supervisor_sha256: str
    volumes: tuple[str, ...]
    variables: tuple[str, ...]

    def for_boxes(
        self, *, cpus: int = 1, executable_folders: tuple[str, ...] = (), runtime: str | None = None
    ) -> BoxImage:
        """What a box's policy needs of it, with what the profile adds."""
        return BoxImage(self.box_image_id, self.volumes, self.variables, cpus, executable_folders, runtime)


class Images:
    """Finds images on an engine, and builds those that are missing.

    `dockerfiles` is the folder with `base` and `supervisor`; `progress` gets plain lines for people.
    """

    def __init__(self, engine: Engine, dockerfiles: Path, progress: Progress) -> None:
        self._engine = engine
        self._dockerfiles = dockerfiles
        self._progress = progress
        self._owner = Owner.current()

    async def runtime(self, recipe: ImageRecipe, *, build: bool = True) -> RuntimeImage:
        """The images of a runtime.

        Raises PrerequisiteError if one is missing and `build` is off, or cannot be built.
        """
        try:
            return await self._runtime(recipe, build)
        except SandboxError as error:
            raise PrerequisiteError(
                f"the image of the runtime {recipe.name} cannot be had: {error.message}", code=error.code,
                hint=_mend(recipe, error),
            ) from error  # fmt: skip

    async def is_built(self, recipe: ImageRecipe) -> bool:
        """Whether the runtime could run without building or pulling anything."""
        try:
            await self.runtime(recipe, build=False)
        except PrerequisiteError as error:
            if error.code == ReasonCode.IMAGE_MISSING:
                return False
            raise
        return True

    async def _runtime(self, recipe: ImageRecipe, build: bool) -> RuntimeImage:
        base_id = await self._base(build)
        if recipe.reference is not None:
            runtime_id = await self._referenced(recipe.reference, build)
        else:
            runtime_id = await self._own(recipe, base_id, build)
        runtime_id = await self._with_packages(recipe, runtime_id, build)
        supervisor = await self._supervisor(base_id, build)
        box = await self._box(recipe, runtime_id, supervisor, build)
        return RuntimeImage(
            recipe.name, runtime_id, box.image_id, box.labels.get(SUPERVISOR_LABEL, ""), box.volumes, box.variables
        )

    async def _base(self, build: bool) -> str:
        files = read_context(self._dockerfiles / "base")
        key = content_key("base", files, suite=SUITE)
        # Found without a look at Debian's own image: that one may be gone, or newer, and the base is as good as before.
        if (found := await self._found(key)) is not None:
            return found.image_id
        _must_build(build, "base")
        debian_id = await self._debian()
        return (await self._made("base", key, files, {"BASE_IMAGE": debian_id})).image_id

    async def _debian(self) -> str:
        found = await self._engine.image(DEBIAN_IMAGE)
        if found is None:
            try:
                with anyio.move_on_after(_PULL_WITHIN_S):
                    await self._engine.pull(DEBIAN_IMAGE, self._progress)
            except SandboxError as error:
                self._progress(f"no registry gives {DEBIAN_IMAGE} ({error.message.splitlines()[0][:200]})")
            found = await self._engine.image(DEBIAN_IMAGE)
        if found is not None:
            return found.image_id
        key = content_key("debian", {}, suite=SUITE)
        async with held_lock(f"image-{key}"):
            if (made := await self._found(key)) is not None:
                return made.image_id
            self._progress(f"making Debian {SUITE} here instead, from Debian's packages (about half a minute)")
            labels = {KIND_LABEL: "debian", KEY_LABEL: key}
            return await make_debian(self._engine, f"grader/debian:{key[:12]}", labels, self._progress)

    async def _own(self, recipe: ImageRecipe, base_id: str, build: bool) -> str:
        if recipe.folder is None:
            raise SandboxError(f"{recipe.name} names no image", code=ReasonCode.IMAGE_MISSING)
        files = read_context(recipe.folder)
        key = content_key("runtime", files, base=base_id)
        if (found := await self._found(key)) is not None:
            return found.image_id
        _must_build(build, recipe.name)
        return (await self._made(f"runtime-{recipe.name}", key, files, {"BASE_IMAGE": base_id})).image_id

    async def _referenced(self, reference: str, build: bool) -> str:
        found = await self._engine.image(reference)
        if found is None:
            _must_build(build, reference)
            await self._engine.pull(reference, self._progress)
            found = await self._engine.image(reference)
        if found is None:
            raise SandboxError(f"there is no image {reference}", code=ReasonCode.IMAGE_MISSING)
        return found.image_id

    async def _with_packages(self, recipe: ImageRecipe, runtime_id: str, build: bool) -> str:
        if not recipe.debian and not recipe.pypi:
            return runtime_id
        # Where the packages come from is the machine's affair: the key is over what they are.
        key = content_key("packages", {"Dockerfile": packages_dockerfile(recipe).encode()}, base=runtime_id)
        if (found := await self._found(key)) is not None:
            return found.image_id
        _must_build(build, recipe.name)
        certificates = _certificates(os.environ) if recipe.pypi else None
        files = {"Dockerfile": packages_dockerfile(recipe, with_certificates=certificates is not None).encode()}
        if certificates is not None:
            files[_CERTIFICATES.rpartition("/")[2]] = certificates
        args = {"BASE_IMAGE": runtime_id}
        if recipe.pypi and os.environ.get("PIP_INDEX_URL"):
            args["PIP_INDEX_URL"] = os.environ["PIP_INDEX_URL"]
        return (await self._made(f"packages-{recipe.name}", key, files, args)).image_id

    async def _supervisor(self, base_id: str, build: bool) -> ImageFacts:
        files = {**read_context(self._dockerfiles / "supervisor"), **supervisor_sources()}
        key = content_key("supervisor", files, base=base_id)
        if (found := await self._found(key)) is not None:
            return found
        _must_build(build, "supervisor")
        return await self._made("supervisor", key, files, {"BASE_IMAGE": base_id})

    async def _box(self, recipe: ImageRecipe, runtime_id: str, supervisor: ImageFacts, build: bool) -> ImageFacts:
        dockerfile = f"ARG BASE_IMAGE\nFROM ${{BASE_IMAGE}}\nCOPY supervisor {SUPERVISOR_PATH}\n".encode()
        key = content_key("box", {"Dockerfile": dockerfile}, base=runtime_id, supervisor=supervisor.image_id)
        if (found := await self._found(key)) is not None:
            return found
        _must_build(build, recipe.name)
        labels = self._owner.labels(_BUILD_LIFETIME_S)
        binary = await self._engine.file_of_image(supervisor.image_id, "/supervisor", labels)
        extra = {SUPERVISOR_LABEL: hashlib.sha256(binary).hexdigest()}
        files = {"Dockerfile": dockerfile, "supervisor": binary}
        return await self._made(f"box-{recipe.name}", key, files, {"BASE_IMAGE": runtime_id}, extra)

    async def _found(self, key: str) -> ImageFacts | None:
        """The image with this content key; the tagged one if there are several."""
        listed = sorted(
            await self._engine.images(f"{KEY_LABEL}={key}"), key=lambda image: (not image.tags, image.image_id)
        )
        # The listing does not know volumes and variables.
        return await self._engine.image(listed[0].image_id) if listed else None

    async def _made(
        self, name: str, key: str, files: Mapping[str, bytes], args: Mapping[str, str],
        extra_labels: Mapping[str, str] | None = None,
    ) -> ImageFacts:  # fmt: skip
        """Build the image with this key, unless another grader has built it while we waited for our turn."""
        async with held_lock(f"image-{key}"):
            if (found := await self._found(key)) is not None:
                return found
            kind = name.partition("-")[0]
            self._progress(f"building the image {name}")
            labels = {KIND_LABEL: kind, KEY_LABEL: key, **(extra_labels or {})}
            context = context_archive(files, executable={"supervisor"})
            request = BuildRequest(context, f"grader/{name}:{key[:12]}", labels, args)
            image_id = await self._engine.build(request, lambda line: self._progress(f"[{name}] {line}"))
            await self._remove_doubles(key, image_id)
            found = await self._engine.image(image_id)
        if found is None:
            raise SandboxError(f"the image {name} is gone as soon as it was built", code=ReasonCode.IMAGE_MISSING)
        return found

    async def _remove_doubles(self, key: str, image_id: str) -> None:
        """Another user's grader may have built the same meanwhile, and has lost its tag to ours."""
        for image in await self._engine.images(f"{KEY_LABEL}={key}"):
            if image.image_id != image_id and not image.tags:
                await self._engine.remove_image(image.image_id)


def _mend(recipe: ImageRecipe, error: SandboxError) -> str:
    if error.code == ReasonCode.HOST_DISK_FULL:
        return "make room on the engine's disk"
    if recipe.folder is None:
        return "check the image's name and digest in the profile, and that the engine reaches its registry"
    return f"mend what it says, then: grader runtimes build {recipe.name}"


async def remove_images(engine: Engine) -> int:
    """Remove every image that grader made on this engine; how many. Those that a container uses stay."""
    order = {"box": 0, "packages": 1, "supervisor": 1, "runtime": 2, "base": 3, "debian": 4}
    images = await engine.images(KIND_LABEL)
    ordered = sorted(images, key=lambda image: order.get(image.labels.get(KIND_LABEL, ""), 0))
    removed = 0
    for image in ordered:
        for reference in image.tags or (image.image_id,):
            await engine.remove_image(reference)
        removed += await engine.image(image.image_id) is None
    return removed


def read_context(folder: Path) -> dict[str, bytes]:
    """The files of a build folder, by relative path. Raises PrerequisiteError if it cannot be read or is too large."""
    files: dict[str, bytes] = {}
    size = 0
    try:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not file.is_symlink():
                files[file.relative_to(folder).as_posix()] = file.read_bytes()
                size += len(files[file.relative_to(folder).as_posix()])
    except OSError as error:
        raise PrerequisiteError(f"{folder} cannot be read: {error}") from error
    if "Dockerfile" not in files:
        raise PrerequisiteError(f"there is no {folder / 'Dockerfile'}", hint="reinstall grader, or name another image")
    if size > _LARGEST_CONTEXT_BYTES:
        raise PrerequisiteError(
            f"{folder} holds more than {_LARGEST_CONTEXT_BYTES >> 20} MiB", hint="fetch data instead"
        )
    return files


def supervisor_sources() -> dict[str, bytes]:
    """The supervisor's sources, as they stand in its build context."""
    folder = importlib.resources.files("grader.sandbox.supervisor") / "src"
    return {f"src/{file.name}": file.read_bytes() for file in folder.iterdir() if file.is_file()}


def packages_dockerfile(recipe: ImageRecipe, *, with_certificates: bool = False) -> str:
    """The Dockerfile that adds a profile's packages. Their names were checked: none means anything to a shell.

    `with_certificates`: pip trusts this machine's bundle, which is in the context (behind a proxy of one's own).
    """
    steps: list[str] = []
    clean = f"rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* /root/.cache {_CERTIFICATES}"
    install = "DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends"
    if recipe.debian:
        steps.append(f"RUN apt-get update && {install} {' '.join(sorted(recipe.debian))} && {clean}")
    if recipe.pypi:
        certificates = f" --cert {_CERTIFICATES}" if with_certificates else ""
        pip = f"python3 -m pip install --no-cache-dir --break-system-packages --only-binary :all:{certificates}"
        if with_certificates:
            steps.append(f"COPY {_CERTIFICATES.rpartition('/')[2]} {_CERTIFICATES}")
        steps.append("ARG PIP_INDEX_URL")
        steps.append(
            f"RUN apt-get update && {install} python3-pip && {pip} {' '.join(sorted(recipe.pypi))}"
            f" && apt-get purge --yes --auto-remove python3-pip && {clean}"
        )
    return "\n".join(["ARG BASE_IMAGE", "FROM ${BASE_IMAGE}", *steps, ""])


def content_key(kind: str, files: Mapping[str, bytes], **of: str) -> str:
    """The content key: the digest of the files, of what the image is made from, and of the architecture."""
    contents = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return digest({"kind": kind, "files": contents, "of": of, "architecture": platform.machine()})


def _certificates(environment: Mapping[str, str]) -> bytes | None:
    """The bundle of certificates that pip is told to trust on this machine, if it is told."""
    for name in ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        path = environment.get(name)
        if path and os.path.isfile(path) and os.path.getsize(path) < _LARGEST_CONTEXT_BYTES:
            return Path(path).read_bytes()
    return None


def _must_build(build: bool, name: str) -> None:
    if not build:
        raise SandboxError(f"{name} is not built yet", code=ReasonCode.IMAGE_MISSING)
