"""Requests: byte-exact, and refused with a sentence where the box would refuse them with its life."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from grader.sandbox.supervisor.requests import (
    RunRequest,
    encode_hello,
    encode_put,
    encode_run,
    encode_stdin,
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


def test_a_nonce_has_16_bytes() -> None:
    with pytest.raises(ValueError, match="16"):
        encode_hello(b"short")
