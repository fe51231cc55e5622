"""Docker tests are skipped only where no engine answers; with GRADER_REQUIRE_DOCKER=1 (CI) a skip is a failure."""

from __future__ import annotations

import functools
import os
from collections.abc import Generator

import anyio
import pytest

from grader.errors import PrerequisiteError
from grader.sandbox.docker.engine import Engine

REQUIRED = os.environ.get("GRADER_REQUIRE_DOCKER") == "1"


@functools.cache
def missing_engine() -> str | None:
    """Why no engine answers; None if one does."""

    async def ask() -> str | None:
        try:
            engine = await Engine.connect()
        except PrerequisiteError as error:
            return error.message
        await engine.close()
        return None

    return anyio.run(ask)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a Docker test where no engine answers, or fail it where one is required."""
    if item.get_closest_marker("docker") is None:
        return
    why = missing_engine()
    if why is not None and REQUIRED:
        pytest.fail(f"GRADER_REQUIRE_DOCKER=1, and {why}", pytrace=False)
    elif why is not None:
        pytest.skip(why)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where an engine is required, a Docker test that skips itself has tested nothing: it fails."""
    report = yield
    if (
        REQUIRED
        and report.skipped
        and item.get_closest_marker("docker") is not None
        and not hasattr(report, "wasxfail")
    ):
        report.outcome = "failed"
        report.longrepr = f"GRADER_REQUIRE_DOCKER=1, and the test was skipped: {report.longrepr}"
    return report


@pytest.fixture
def anyio_backend() -> str:
    """Asynchronous tests (marked `anyio`) run on asyncio."""
    return "asyncio"
