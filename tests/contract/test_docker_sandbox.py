"""The contract, on the real engine, under every isolation."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from grader.core.plan import ProfileInForce
from grader.sandbox.base import ISOLATIONS, ImageSource, Isolation
from grader.sandbox.bench import Bench
from grader.sandbox.contract import CHECKS, Check
from grader.sandbox.docker.sandbox import DockerSandbox

pytestmark = [pytest.mark.anyio, pytest.mark.docker]
DOCKERFILE = Path(__file__).resolve().parents[2] / "Dockerfiles" / "bash"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One event loop for the module: the sandbox stays open from test to test, as it does for a user."""
    return "asyncio"


@pytest.fixture(scope="module", params=ISOLATIONS)
async def bench(request: pytest.FixtureRequest) -> AsyncGenerator[Bench]:
    isolation: Isolation = request.param
    async with DockerSandbox(isolation=isolation) as sandbox:
        image_id = await sandbox.image(ImageSource(folder=DOCKERFILE), lambda _: None)
        yield Bench(sandbox, ProfileInForce(name="contract", image_id=image_id))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
async def test_docker_keeps_the_contract(bench: Bench, check: Check) -> None:
    await check.run(bench)
