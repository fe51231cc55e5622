"""Locks between graders: alone or shared, never waited for where that is not asked, and free when the holder dies."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grader.errors import PrerequisiteError
from grader.sandbox.docker.locks import held_if_free, held_lock

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRADER_RUNTIME_DIR", str(tmp_path / "runtime"))
    return tmp_path / "runtime"


async def test_a_lock_is_shared_by_those_who_share_it_and_free_for_one_alone_afterwards() -> None:
    async with held_lock("x", at_most_s=0, is_shared=True):
        async with held_lock("x", at_most_s=0, is_shared=True):
            with held_if_free("x") as is_free, held_if_free("y") as other:
                assert (is_free, other) == (False, True)
        with held_if_free("x") as is_free:
            assert not is_free
    with held_if_free("x") as is_free:
        assert is_free


@pytest.mark.parametrize("is_shared", [False, True])
async def test_what_is_held_alone_is_waited_for_no_longer_than_said(is_shared: bool) -> None:
    with held_if_free("x") as is_free:
        assert is_free
        with pytest.raises(PrerequisiteError, match=r"another grader has held the lock x for 0\.01 s"):
            async with held_lock("x", at_most_s=0.01, is_shared=is_shared):
                pass


HOLDER = """
import anyio
from grader.sandbox.docker.locks import held_lock

async def main():
    async with held_lock("x", is_shared=True):
        print("held", flush=True)
        await anyio.sleep(60)

anyio.run(main)
"""


def test_the_lock_of_a_grader_that_was_killed_is_free() -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            with held_if_free("x") as is_free:
                assert not is_free
        finally:
            process.send_signal(signal.SIGKILL)
    with held_if_free("x") as is_free:
        assert is_free


def test_a_lock_that_is_a_link_is_not_followed(runtime: Path, tmp_path: Path) -> None:
    runtime.mkdir()
    (runtime / "x.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PrerequisiteError, match="the lock x cannot be opened"), held_if_free("x"):
        pass
    assert not (tmp_path / "elsewhere").exists()
