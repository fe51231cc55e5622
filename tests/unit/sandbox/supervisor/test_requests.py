"""Requests: byte-exact, and refused with a sentence where the box would refuse them with its life."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.sandbox.base import Port
from grader.sandbox.supervisor.requests import (
    RunFrames,
    RunRequest,
    encode_hello,
    encode_port,
    encode_put,
    encode_run,
    encode_start,
    encode_stdin,
    encode_stdin_end,
)
from grader.sandbox.supervisor.wire import PAYLOAD_MAX, UNKNOWN

GOOD = RunRequest((b"/bin/echo", b"", b"$(x)", b"\xff\n"), ((b"A", b""), (b"B", b"x=y")), (b"out/f",))


def split(data: bytes) -> list[tuple[int, int, bytes]]:
    frames: list[tuple[int, int, bytes]] = []
    while data:
        kind, flags, length, run_id = struct.unpack_from("<HHIQ", data)
        assert flags == 0
        frames.append((kind, run_id, data[16 : 16 + length]))
        data = data[16 + length :]
    return frames


def test_strings_are_exactly_what_was_asked() -> None:
    begin, strings = split(encode_run(5, GOOD))
    assert strings == (6, 5, b"/bin/echo\0\0$(x)\0\xff\n\0A=\0B=x=y\0out/f\0")
    numbers = struct.unpack("<20Q", begin[2])
    assert numbers[12:16] == (4, 2, 1, len(strings[2]))
    assert numbers[7] == numbers[9] == UNKNOWN  # stack and processes: as inherited
    assert numbers[18] == 0


def test_options_are_bits() -> None:
    (begin, _) = split(encode_run(5, replace(GOOD, send_kept=True, stream_stdin=True, stack_bytes=0, processes=0)))
    numbers = struct.unpack("<20Q", begin[2])
    assert (numbers[7], numbers[9], numbers[18]) == (0, 0, 3)


def test_long_content_is_cut_into_frames() -> None:
    content = bytes(range(256)) * 600
    frames = split(encode_put(b"a", content, executable=True, run_id=3))
    assert frames[0] == (2, 3, b"\1\1\0\0a")
    assert b"".join(payload for kind, _, payload in frames if kind == 3) == content
    assert max(len(payload) for _, _, payload in frames) == PAYLOAD_MAX
    assert frames[-1] == (4, 3, b"")
    assert split(encode_stdin(3, b"")) == []


@pytest.mark.parametrize(
    "bad",
    [
        {"argv": ()},
        {"argv": (b"",)},
        {"argv": (b"a\0b",)},
        {"environment": ((b"", b"x"),)},
        {"environment": ((b"A=B", b"x"),)},
        {"environment": ((b"A", b"x\0"),)},
        {"collect": (b"../x",)},
        {"collect": (b"/x",)},
        {"collect": (b"x",) * 257},
        {"argv": (b"x" * (4 << 20),)},
        {"cpu_time_ns": 0},
        {"wall_time_ns": -1},
        {"wall_time_ns": UNKNOWN // 4 + 1},
        {"stdout_keep_bytes": (64 << 20) + 1},
        {"file_size_bytes": UNKNOWN + 1},
        {"open_files": 2},
        {"keep_files": 10_001},
    ],
)
def test_what_cannot_be_run(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        encode_run(5, replace(GOOD, **bad))  # type: ignore[arg-type]


@pytest.mark.parametrize("run_id", [0, -1, UNKNOWN])
def test_a_run_id_is_above_zero(run_id: int) -> None:
    with pytest.raises(ValueError, match="run id"):
        encode_run(run_id, GOOD)
    with pytest.raises(ValueError, match="run id"):
        RunFrames.of(GOOD, b"").with_id(run_id)


PORT = Port(4318, 2, 100, 1 << 20)
RUN_ID = st.one_of(st.just(1), st.integers(1, UNKNOWN - 1))


@given(run_id=RUN_ID, tail=st.binary(max_size=40), port=st.sampled_from([None, PORT]), streams=st.booleans())
def test_a_run_is_its_frames_one_by_one(run_id: int, tail: bytes, port: Port | None, streams: bool) -> None:
    """Encoded once and given an id later, or frame by frame: the same bytes, also where they look like headers."""
    stdin = tail + encode_start(1) + tail
    argument = tail.replace(b"\0", b"\1")
    request = replace(GOOD, argv=(b"/x", argument), port=port, stream_stdin=streams)
    expected = encode_run(run_id, request)
    expected += b"" if port is None else encode_port(run_id, port)
    expected += encode_stdin(run_id, stdin)
    expected += b"" if streams else encode_stdin_end(run_id)
    assert RunFrames.of(request, stdin).with_id(run_id) == expected + encode_start(run_id)


@pytest.mark.parametrize("size", [0, 1, PAYLOAD_MAX, PAYLOAD_MAX + 1, 3 * PAYLOAD_MAX])
def test_content_of_every_size_travels_under_its_id(size: int) -> None:
    stdin, request = b"\1" * size, replace(GOOD, argv=(b"/x", b"y" * size))
    frames = split(RunFrames.of(request, stdin).with_id(77))
    assert {run_id for _, run_id, _ in frames} == {77}
    assert b"".join(payload for kind, _, payload in frames if kind == 7) == stdin
    assert b"".join(payload for kind, _, payload in frames if kind == 6) == request.strings()
    assert [kind for kind, _, _ in frames if kind in {5, 8, 9}] == [5, 8, 9]


def test_a_nonce_has_16_bytes() -> None:
    with pytest.raises(ValueError, match="16"):
        encode_hello(b"short")
