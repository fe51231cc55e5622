"""Images on a real engine: built once, found again, byte-exact inside, and nothing dangling when a build fails."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import docker.errors
import pytest

from grader.core.reasons import ReasonCode
from grader.errors import PrerequisiteError, SandboxError
from grader.runtimes import LoadedProfile, data_folder, load_profiles
from grader.runtimes.folders import load_profile
from grader.sandbox.docker.builds import BuildRequest, context_archive
from grader.sandbox.docker.engine import Engine
from grader.sandbox.docker.images import ImageRecipe, Images, RuntimeImage, remove_images
from grader.sandbox.docker.locks import IMAGES, held_if_free
from grader.sandbox.docker.policy import SUPERVISOR_PATH
from grader.sandbox.docker.reaper import OWNED_LABEL
from grader.sandbox.docker.sandbox import DockerSandbox

pytestmark = [pytest.mark.docker, pytest.mark.anyio]


def quiet(line: str) -> None:
    """No progress."""


@pytest.fixture
async def engine() -> AsyncGenerator[Engine]:
    """The engine."""
    engine = await Engine.connect()
    yield engine
    await engine.close()


async def left_behind(engine: Engine, token: str) -> set[str]:
    """Nameless images that no other image is made of, with this token in their history (others build meanwhile)."""

    def look(client: Any) -> set[str]:
        found: set[str] = set()
        for image in client.images(filters={"dangling": True}):
            with suppress(docker.errors.NotFound):
                if any(token in str(step.get("CreatedBy", "")) for step in client.history(image["Id"])):
                    found.add(str(image["Id"]))
        return found

    return await engine._call("look", look)  # pyright: ignore[reportPrivateUsage]


async def built(engine: Engine, recipe: ImageRecipe) -> RuntimeImage:
    return await Images(engine, data_folder("Dockerfiles"), quiet).runtime(recipe)


def shipped() -> list[Any]:
    """The shipped profiles; slow are those whose images are not there in the usual tests."""
    usual = {"bash", "c", "python"}
    return [
        pytest.param(loaded, id=loaded.name, marks=[] if loaded.name in usual else [pytest.mark.slow])
        for loaded in map(load_profile, sorted(data_folder("runtimes").glob("*.yaml")))
    ]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("loaded", shipped())
async def test_a_profiles_image_is_found_again_without_building(engine: Engine, loaded: LoadedProfile) -> None:
    lines: list[str] = []
    recipe = ImageRecipe(loaded.name, loaded.image_folder())
    first = await built(engine, recipe)
    again = await Images(engine, data_folder("Dockerfiles"), lines.append).runtime(recipe, build=False)
    assert again == first
    assert first.image_id != first.box_image_id
    assert len(first.supervisor_sha256) == 64
    assert lines == []


async def test_the_box_image_holds_the_supervisor_that_its_label_names(engine: Engine) -> None:
    [loaded] = [each for each in load_profiles() if each.name == "bash"]
    image = await built(engine, ImageRecipe("bash", loaded.image_folder()))
    binary = await engine.file_of_image(image.box_image_id, SUPERVISOR_PATH, {OWNED_LABEL: "1"})
    assert hashlib.sha256(binary).hexdigest() == image.supervisor_sha256
    assert binary[:4] == b"\x7fELF"


async def test_no_runtime_image_has_a_set_id_program(engine: Engine) -> None:
    [loaded] = [each for each in load_profiles() if each.name == "bash"]
    image = await built(engine, ImageRecipe("bash", loaded.image_folder()))
    config = {
        "Image": image.image_id,
        "Entrypoint": ["/bin/sh", "-c", "test -z \"$(find / -xdev -type f -perm /6000 -print -quit)\""],
        "Cmd": [],
        "Labels": {"grader.test.images": "1"},
        "HostConfig": {"NetworkMode": "none"},
    }  # fmt: skip
    container_id = await engine.create(config)
    try:
        await engine.start(container_id)
        with anyio.fail_after(30):
            while (state := await engine.state(container_id)) is not None and state.is_running:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        assert state is not None
        assert state.exit_code == 0
    finally:
        await engine.remove(container_id)


async def test_an_image_that_is_not_built_is_said_and_not_built_where_that_is_off(
    engine: Engine, tmp_path: Path
) -> None:
    (tmp_path / "Dockerfile").write_text(f"ARG BASE_IMAGE\nFROM ${{BASE_IMAGE}}\nRUN echo {secrets.token_hex(8)}\n")
    images = Images(engine, data_folder("Dockerfiles"), quiet)
    recipe = ImageRecipe("missing", tmp_path)
    assert not await images.is_built(recipe)
    with pytest.raises(PrerequisiteError, match="missing is not built yet") as caught:
        await images.runtime(recipe, build=False)
    assert caught.value.code == ReasonCode.IMAGE_MISSING


async def test_a_failed_build_says_why_and_leaves_no_image_and_no_container(engine: Engine, tmp_path: Path) -> None:
    token = secrets.token_hex(8)
    (tmp_path / "Dockerfile").write_text(
        f"ARG BASE_IMAGE\nFROM ${{BASE_IMAGE}}\nRUN echo {token} > /x\nRUN echo because >&2; exit 9\n"
    )
    with pytest.raises(PrerequisiteError, match="because") as caught:
        await built(engine, ImageRecipe("broken", tmp_path))
    assert caught.value.code == ReasonCode.IMAGE_MISSING
    assert "non-zero code: 9" in str(caught.value)
    assert await left_behind(engine, token) == set()


async def test_two_graders_that_need_the_same_image_build_it_once(engine: Engine, tmp_path: Path) -> None:
    token = secrets.token_hex(8)
    text = f"ARG BASE_IMAGE\nFROM ${{BASE_IMAGE}}\nRUN sleep 0.5; echo {token} > /x\n"
    (tmp_path / "Dockerfile").write_text(text)
    recipe = ImageRecipe("twice", tmp_path)
    lines: list[str] = []
    results: list[RuntimeImage] = []

    async def one() -> None:
        results.append(await Images(engine, data_folder("Dockerfiles"), lines.append).runtime(recipe))

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(one)
            group.start_soon(one)
        assert results[0] == results[1]
        assert lines.count("building the image runtime-twice") == 1
    finally:
        for result in results[:1]:
            for image_id in (result.box_image_id, result.image_id):
                found = await engine.image(image_id)
                assert found is not None
                assert found.tags, "an image without a tag would be removed by any prune"
                await engine.remove_image(found.tags[0])
    assert await engine.image(results[0].image_id) is None
    assert await left_behind(engine, token) == set()


async def test_an_image_by_digest_that_nobody_has_is_refused(engine: Engine) -> None:
    reference = "grader-nowhere@sha256:" + "0" * 64
    with pytest.raises(PrerequisiteError, match="cannot be had"):
        await built(engine, ImageRecipe("nowhere", reference=reference))


async def test_images_volumes_and_variables_are_known(engine: Engine, tmp_path: Path) -> None:
    [loaded] = [each for each in load_profiles() if each.name == "bash"]
    bash = await built(engine, ImageRecipe("bash", loaded.image_folder()))
    dockerfile = b"ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nVOLUME /data\nENV LD_PRELOAD=/evil.so\n"
    tag = f"grader-test/volumes:{secrets.token_hex(4)}"
    request = BuildRequest(context_archive({"Dockerfile": dockerfile}), tag, {}, {"BASE_IMAGE": bash.image_id})
    try:
        image_id = await engine.build(request, quiet)
        found = await engine.image(image_id)
        assert found is not None
        assert found.volumes == ("/data",)
        assert "LD_PRELOAD" in found.variables
    finally:
        await engine.remove_image(tag)


async def test_a_cancelled_build_is_left_at_once_and_leaves_nothing(engine: Engine) -> None:
    token = secrets.token_hex(8)
    [loaded] = [each for each in load_profiles() if each.name == "bash"]
    bash = await built(engine, ImageRecipe("bash", loaded.image_folder()))
    dockerfile = f"ARG BASE_IMAGE\nFROM ${{BASE_IMAGE}}\nRUN echo {token}; sleep 3\n".encode()
    request = BuildRequest(
        context_archive({"Dockerfile": dockerfile}), "grader-test/slow:1", {}, {"BASE_IMAGE": bash.image_id}
    )
    with anyio.move_on_after(0.5) as scope:
        await engine.build(request, quiet)
    assert scope.cancelled_caught
    for _ in range(100):
        if await engine.image("grader-test/slow:1") is None and await left_behind(engine, token) == set():
            break
        await anyio.sleep(0.1)
    assert await engine.image("grader-test/slow:1") is None
    assert await left_behind(engine, token) == set()


async def test_removing_images_is_by_our_label_only(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def none_of_ours(self: Engine, label: str) -> tuple[()]:
        asked.append(label)
        return ()

    monkeypatch.setattr(Engine, "images", none_of_ours)
    assert await remove_images(engine) == 0
    assert asked == ["grader.image"]


async def test_an_open_sandbox_keeps_images_from_being_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_RUNTIME_DIR", str(tmp_path / "runtime"))
    async with DockerSandbox():
        with held_if_free(IMAGES) as is_free:
            assert not is_free
    with held_if_free(IMAGES) as is_free:
        assert is_free


async def test_errors_of_the_engine_never_leave_as_its_own(engine: Engine) -> None:
    with pytest.raises(SandboxError):
        await engine.build(BuildRequest(b"no tar", "grader-test/none:1", {}), quiet)
