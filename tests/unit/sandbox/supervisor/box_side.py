"""The box's half of the protocol in a few lines, for tests of the client's half."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from grader.sandbox.supervisor.frames import RESULT_FIELDS
from grader.sandbox.supervisor.wire import MAGIC, PROTOCOL_VERSION, UNKNOWN

RUN = 0x1234


def frame(kind: int, payload: bytes = b"", run_id: int = RUN) -> bytes:
    return struct.pack("<HHIQ", kind, 0, len(payload), run_id) + payload


def hello(nonce: bytes, facts: dict[str, bytes] | None = None, version: int = PROTOCOL_VERSION) -> bytes:
    parts = [frame(129, MAGIC + struct.pack("<HHI", version, 0, 0) + nonce + struct.pack("<Q", 5), 0)]
    for name, content in (facts or {}).items():
        parts.append(frame(130, struct.pack("<IHH", 0, len(name), 0) + name.encode() + content, 0))
    return b"".join(parts) + frame(131, run_id=0)


def result(
    numbers: Mapping[str, int | None] | None = None,
    *,
    run_id: int = RUN,
    sha256: bytes = bytes(32),
    text: bytes = b"",
) -> bytes:
    """A RESULT of a run that exited 0, with some of its numbers changed."""
    values = dict.fromkeys(RESULT_FIELDS, 0) | {"ended_by": 1, "box_usable": 1} | dict(numbers or {})
    packed = struct.pack("<52Q", *(UNKNOWN if v is None else v for v in values.values()), *[0] * (52 - len(values)))
    return frame(142, packed + sha256 + bytes(32) + text, run_id)


def stream(number: int, data: bytes, run_id: int = RUN) -> bytes:
    return frame(135, bytes([number]) + data, run_id)


def file(index: int, status: int = 0, size: int = 0, run_id: int = RUN) -> bytes:
    return frame(136, struct.pack("<IBBHIIQQ", index, status, 1, 0, 0o644, 0, size, 4096), run_id)


def kept(path: bytes, size: int, executable: int = 0) -> bytes:
    return frame(138, bytes([executable]) + bytes(7) + struct.pack("<Q", size) + path)
