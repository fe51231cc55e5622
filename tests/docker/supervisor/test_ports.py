"""The port of a run, as the supervisor keeps it: frames that break the rules end the box, those that crossed do not."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.core.plan import ProfileInForce
from grader.sandbox.base import Failed, ImageSource, Port, PortSeen, Reply
from grader.sandbox.bench import Bench
from grader.sandbox.docker.sandbox import DockerSandbox
from grader.sandbox.supervisor import requests
from grader.sandbox.supervisor.requests import RunRequest
from grader.sandbox.supervisor.wire import Fatal

from .box import Box, BoxLostError, RunResult

pytestmark = pytest.mark.docker
NewBox = Callable[..., Box]
RUN = 7
PORT = Port(4318)
DOCKERFILE = Path(__file__).resolve().parents[3] / "Dockerfiles" / "bash"


def frame(kind: int, payload: bytes = b"", run_id: int = RUN) -> bytes:
    return struct.pack("<HHIQ", kind, 0, len(payload), run_id) + payload


def port_open(kind: int = 2, number: int = 4318, at_once: int = 4, zero: int = 0) -> bytes:
    return frame(32, struct.pack("<4HIIQ", kind, number, at_once, zero, 100, 0, 1000))


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(port_open(kind=1), id="a kind that is reserved"),
        pytest.param(port_open(number=80), id="a port below 1024"),
        pytest.param(port_open(at_once=0), id="no connection at once"),
        pytest.param(port_open(at_once=33), id="too many at once"),
        pytest.param(port_open(zero=1), id="a field that is 0"),
        pytest.param(port_open()[:-1], id="a short one"),
        pytest.param(port_open() + port_open(), id="two ports"),
        pytest.param(frame(33, struct.pack("<I", 1) + b"x"), id="data before the start"),
        pytest.param(frame(35, struct.pack("<Q", 0)), id="seen before the start"),
    ],
)
def test_a_port_that_breaks_the_rules_ends_the_box(new_box: NewBox, sent: bytes) -> None:
    box = new_box()
    box.send(requests.encode_run(RUN, RunRequest((b"/probe", b"exit", b"0"))) + sent + requests.encode_stdin_end(RUN))
    box.send(frame(9))
    with pytest.raises(BoxLostError) as lost:
        box.until(RunResult)
    assert [event.code for event in lost.value.events if isinstance(event, Fatal)] == [1]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frame(35, struct.pack("<Q", 1)), id="more seen than was sent"),
        pytest.param(frame(34, struct.pack("<II", 0, 1)), id="a close with more in it"),
        pytest.param(frame(33, b"\0\0\0\0"), id="data without data"),
        pytest.param(port_open(), id="a port while it runs"),
    ],
)
def test_so_does_a_frame_at_the_wrong_moment(new_box: NewBox, sent: bytes) -> None:
    box = new_box()
    box.send(box.talk.begin(RUN, RunRequest((b"/probe", b"sleep", b"5000"), port=PORT)) + sent)
    with pytest.raises(BoxLostError) as lost:
        box.until(RunResult)
    assert [event.code for event in lost.value.events if isinstance(event, Fatal)] == [1]


def test_frames_for_what_is_gone_have_crossed(new_box: NewBox) -> None:
    box = new_box()
    stale = (
        frame(33, struct.pack("<I", 5) + b"x") + frame(34, struct.pack("<II", 5, 0)) + frame(35, struct.pack("<Q", 0))
    )
    box.send(box.talk.begin(RUN, RunRequest((b"/probe", b"sleep", b"50"), port=PORT)) + stale)
    assert box.until(RunResult).exit_code == 0
    box.send(stale)  # of the run that has just ended
    assert box.probe("exit", "4").exit_code == 4


class SlowEar:
    """A client that is busy with something else for a while."""

    port = PORT

    def __init__(self, busy_s: float) -> None:
        self.busy_s = busy_s

    def hear(self, connection: int, data: bytes) -> Reply:
        del connection
        if data:
            time.sleep(self.busy_s)
        return Reply(b"heard\n", closes=True)

    def finish(self, seen: PortSeen) -> None:
        assert seen.connections == 1


@pytest.mark.anyio
async def test_time_in_which_the_client_is_busy_is_not_the_programs() -> None:
    async with DockerSandbox() as sandbox:
        image_id = await sandbox.image(ImageSource(folder=DOCKERFILE), lambda _: None)
        bench = Bench(sandbox, ProfileInForce(name="contract", image_id=image_id))
        async with bench.seat() as seat:
            asked = bench.invocation(b"send", b"4318", b"hello", limits=bench.limits(wall_time_s=0.6))
            outcome = await seat.run(asked, SlowEar(busy_s=1.0))
    assert not isinstance(outcome, Failed)
    assert outcome.measures.stopped_for is None
    assert outcome.stdout.captured.kept == b"heard\n"
    assert (outcome.measures.stdin_starved_ns or 0) >= 900_000_000
