"""Where no image registry answers, the base image is made from Debian's packages, once, and said so."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from grader.runtimes import data_folder
from grader.sandbox.docker.engine import Engine
from grader.sandbox.docker.images import KIND_LABEL, Images
from tests.e2e.second_engine import second_engine

pytestmark = [pytest.mark.docker, pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(1800)]


async def test_the_base_image_is_made_here(tmp_path: Path) -> None:
    if shutil.which("mmdebstrap") is None and shutil.which("debootstrap") is None:
        pytest.skip("neither mmdebstrap nor debootstrap is on this machine")
    lines: list[str] = []
    # Through a proxy that is not there this engine reaches no registry, wherever the test runs.
    nowhere = {"HTTP_PROXY": "http://127.0.0.1:1", "HTTPS_PROXY": "http://127.0.0.1:1", "NO_PROXY": ""}
    with (
        tempfile.TemporaryDirectory(prefix="engine-") as folder,
        second_engine(Path(folder) / "e", **nowhere) as second,
    ):
        engine = await Engine.connect(second.address)
        try:
            images = Images(engine, data_folder("Dockerfiles"), lines.append)
            base_id = await images._base(build=True)  # pyright: ignore[reportPrivateUsage]
            assert any("no registry gives debian:bookworm-slim" in line for line in lines)
            assert any("making Debian bookworm here instead" in line for line in lines)
            lines.clear()
            assert await images._base(build=True) == base_id  # pyright: ignore[reportPrivateUsage]
            assert lines == []
            kinds = sorted(image.labels[KIND_LABEL] for image in await engine.images(KIND_LABEL))
            assert kinds == ["base", "debian"]
            assert await engine.file_of_image(base_id, "/etc/debian_version", {}) != b""
            assert second.docker("ps", "-aq").stdout == ""
        finally:
            await engine.close()
