"""Slots: one run per CPU on the whole machine, also between graders, and none lost when a grader dies."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from grader.errors import PrerequisiteError
from grader.sandbox.docker import slots as slots_module
from grader.sandbox.docker.slots import NoSlotError, Slots, runtime_directory

pytestmark = pytest.mark.anyio


def test_the_runtime_directory_is_the_one_named_or_the_users() -> None:
    assert runtime_directory({"GRADER_RUNTIME_DIR": "/a", "XDG_RUNTIME_DIR": "/b"}) == Path("/a")
    assert runtime_directory({"XDG_RUNTIME_DIR": "/b"}) == Path("/b/grader")
    assert runtime_directory({}) == Path(f"/tmp/grader-{os.getuid()}")


async def test_a_slot_has_one_holder_and_is_given_in_the_order_of_asking(tmp_path: Path) -> None:
    events: list[str] = []

    async def use(name: str) -> None:
        async with slots.held((3,)):
            events.append(f"+{name}")
            await checkpoint()
            events.append(f"-{name}")

    with Slots([3], tmp_path) as slots:
        async with anyio.create_task_group() as tasks:
            for name in "abc":
                tasks.start_soon(use, name)
    assert events == ["+a", "-a", "+b", "-b", "+c", "-c"]


async def test_two_graders_share_the_slots_of_the_machine(tmp_path: Path) -> None:
    with Slots([0, 1], tmp_path) as ours, Slots([0, 1], tmp_path) as theirs:
        async with theirs.held((0,)):
            with pytest.raises(NoSlotError):
                async with ours.held((0,), at_most_s=0.05):
                    pass
            async with ours.held((1,), at_most_s=1):
                pass
            assert ours.choose() == (1,)
        async with ours.held((0,), at_most_s=1):
            pass


async def test_a_wait_that_was_given_up_leaves_the_slot_usable(tmp_path: Path) -> None:
    with Slots([0], tmp_path) as ours, Slots([0], tmp_path) as theirs:
        async with theirs.held((0,)):
            with anyio.move_on_after(0.03):
                async with ours.held((0,)):
                    pytest.fail("the slot has two holders")
        async with ours.held((0,), at_most_s=1):
            pass


async def test_a_killed_grader_loses_its_slots(tmp_path: Path) -> None:
    code = (
        "import anyio, sys\nfrom pathlib import Path\nfrom grader.sandbox.docker.slots import Slots\n"
        "async def main():\n with Slots([0], Path(sys.argv[1])) as slots:\n  async with slots.held((0,)):\n"
        "   print('held', flush=True)\n   await anyio.sleep(60)\nanyio.run(main)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as child:  # noqa: ASYNC220
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with Slots([0], tmp_path) as slots:
            with pytest.raises(NoSlotError):
                async with slots.held((0,), at_most_s=0.05):
                    pass
            child.send_signal(signal.SIGKILL)
            child.wait()
            async with slots.held((0,), at_most_s=1):
                pass


async def test_a_busy_grader_lets_a_waiting_one_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots_module, "FAIR_SHARE_S", 0.02)
    got_in = anyio.Event()

    async def be_busy() -> None:
        while not got_in.is_set():
            async with busy.held((0,)):
                await anyio.sleep(0.001)

    with Slots([0], tmp_path) as busy, Slots([0], tmp_path) as waiting:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(be_busy)
            await anyio.sleep(0.01)
            async with waiting.held((0,), at_most_s=5):
                got_in.set()


def test_new_boxes_are_spread_over_the_cpus(tmp_path: Path) -> None:
    with Slots([4, 7], tmp_path) as slots:
        assert {slots.choose(), slots.choose()} == {(4,), (7,)}
        slots.give_back((7,))
        assert slots.choose() == (7,)
        assert slots.choose(2) == (4, 7)
        assert slots.choose(3) == (4, 7)


async def test_a_box_with_two_cpus_needs_both_slots(tmp_path: Path) -> None:
    with Slots([0, 1], tmp_path) as slots:
        async with slots.held((1,)):
            with pytest.raises(NoSlotError):
                async with slots.held((0, 1), at_most_s=0.05):
                    pass
        async with slots.held((0, 1)):
            with pytest.raises(NoSlotError):
                async with slots.held((0,), at_most_s=0.05):
                    pass


def test_a_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    with pytest.raises(PrerequisiteError, match="not a folder of this user"), Slots([0], link):
        pass
    file = tmp_path / "file"
    file.write_bytes(b"")
    with pytest.raises(PrerequisiteError, match="cannot be made"), Slots([0], file / "below"):
        pass


def test_nothing_but_the_lock_files_stays(tmp_path: Path) -> None:
    (tmp_path / "1-dead.alive").write_bytes(b"")
    with Slots([0], tmp_path) as slots:
        assert not (tmp_path / "1-dead.alive").exists()
        (tmp_path / "2-dead.alive").write_bytes(b"")
        with Slots([1], tmp_path):
            assert slots._others_alive(1e9) is True  # pyright: ignore[reportPrivateUsage]
        assert slots._others_alive(2e9) is False  # pyright: ignore[reportPrivateUsage]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cpu0.lock", "cpu1.lock"]
