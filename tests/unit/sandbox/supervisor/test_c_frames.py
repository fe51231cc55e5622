"""The C half of the protocol, under the address and undefined-behaviour sanitizers, against the Python half."""

from __future__ import annotations

import hashlib
import random
import struct
import subprocess
from pathlib import Path

import pytest

from grader.sandbox.supervisor import requests
from grader.sandbox.supervisor.requests import RunRequest
from grader.sandbox.supervisor.wire import PAYLOAD_MAX, UNKNOWN, check_path

from .c_build import SANITIZED, build


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("c") / "frames"
    return build(target, "harness_frames.c", ("frames.c", "sha256.c"), *SANITIZED)


def decode(harness: Path, data: bytes, piece: int = 4096) -> list[str]:
    done = subprocess.run([harness, "frames", str(piece)], input=data, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()


def begin(**changes: int) -> bytes:
    """RUN_BEGIN and RUN_DATA of a good request, with some of its 20 numbers changed by index."""
    data = bytearray(requests.encode_run(9, RunRequest((b"/true",), ((b"A", b"1"),), (b"out.txt",))))
    for index, value in changes.items():
        struct.pack_into("<Q", data, 16 + 8 * int(index.removeprefix("f")), value)
    return bytes(data)


@pytest.mark.parametrize("piece", [1, 7, 4096, PAYLOAD_MAX])
def test_frames_come_out_however_the_bytes_are_cut(harness: Path, piece: int) -> None:
    content = bytes(2 * PAYLOAD_MAX // 8 + 3)
    data = requests.encode_hello(bytes(16)) + requests.encode_put(b"a/b", content) + requests.encode_ping(7)
    lines = decode(harness, data, piece)
    assert lines == [
        "frame 1 0 32",
        "frame 2 0 7",
        "path 1",
        f"frame 3 0 {len(content)}",
        "frame 4 0 0",
        "frame 11 0 8",
        "end 0",
    ]


def test_the_largest_frame_fits_and_one_byte_more_is_refused(harness: Path) -> None:
    largest = struct.pack("<HHIQ", 7, 0, PAYLOAD_MAX, 1) + bytes(PAYLOAD_MAX)
    assert decode(harness, largest + largest) == [f"frame 7 1 {PAYLOAD_MAX}"] * 2 + ["end 0"]
    assert decode(harness, struct.pack("<HHIQ", 7, 0, PAYLOAD_MAX + 1, 1)) == ["bad"]
    assert decode(harness, struct.pack("<HHIQ", 7, 1, 0, 1)) == ["bad"]


def test_what_python_encodes_c_accepts(harness: Path) -> None:
    assert decode(harness, begin())[1:] == [
        "request 1",
        f"frame 6 9 {len(b'/true.A=1.out.txt.')}",
        "strings 1",
        "end 0",
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((0, 0), (0, UNKNOWN // 4 + 1), (1, 0), (1, UNKNOWN), (3, (64 << 20) + 1), (5, (64 << 20) + 1), (8, 2)),
        *((11, (256 << 20) + 1), (12, 0), (12, 65_537), (13, 65_537), (14, 257), (15, (4 << 20) + 1)),
        *((16, 10_001), (17, (256 << 20) + 1), (18, 4), (19, 1)),
    ],
)
def test_a_number_out_of_range_is_refused(harness: Path, field: int, value: int) -> None:
    assert "request 0" in decode(harness, begin(**{f"f{field}": value}))


@pytest.mark.parametrize(("field", "value"), [(12, 2), (13, 0), (13, 2), (14, 0), (14, 2), (15, 17), (15, 19)])
def test_counts_that_do_not_fit_the_strings_are_refused(harness: Path, field: int, value: int) -> None:
    assert "strings 1" not in decode(harness, begin(**{f"f{field}": value}))


@pytest.mark.parametrize(
    "path",
    [
        *(b"a", b"a/b", b"\xff\n", b"...", b"..a", b"x" * 255, b"/".join([b"d"] * 32)),
        *(b"/a", b"a/", b"a//b", b".", b"..", b"a/../b", b"./a", b"a/.", b"x" * 256, b"/".join([b"d"] * 33)),
        b"/".join([b"x" * 200] * 6),
    ],
)
def test_both_halves_agree_on_paths(harness: Path, path: bytes) -> None:
    try:
        check_path(path)
        allowed = True
    except ValueError:
        allowed = False
    frame = struct.pack("<HHIQ", 2, 0, 4 + len(path), 0) + bytes(4) + path
    assert decode(harness, frame)[1] == f"path {int(allowed)}"


def test_hostile_bytes_are_survived(harness: Path) -> None:
    """Mutated and random streams: the sanitizers end the harness at the first byte read out of bounds."""
    rng = random.Random(20_261_130)
    good = requests.encode_hello(bytes(16)) + requests.encode_put(b"a/b", b"xyz") + begin() + requests.encode_start(9)
    for _ in range(150):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 8)):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        cut = rng.randrange(len(data) + 1)
        decode(harness, bytes(data[:cut]) + rng.randbytes(rng.randrange(64)), rng.choice((1, 5, 4096)))


@pytest.mark.parametrize("size", [0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 100_003])
def test_sha256_is_sha256(harness: Path, size: int) -> None:
    data = random.Random(size).randbytes(size)
    for piece in ("1", "61", "64", "4096") if size < 1000 else ("4093",):
        done = subprocess.run([harness, "sha256", piece], input=data, capture_output=True, check=True, timeout=60)
        assert done.stdout.decode() == hashlib.sha256(data).hexdigest()
