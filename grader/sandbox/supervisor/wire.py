"""Bytes of a box to frames of the supervisor's protocol. Pure, and defensive.

PROTOCOL.md is the specification. A program may have taken the box over, so nothing here believes a length: a frame has
a fixed maximum, nothing is allocated from a declared size, and everything malformed raises `ProtocolViolation`.

The frames are in `frames.py`, putting a run's output together in `results.py`; what may follow what is
`dialogue.py`, and a client normally needs only that.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import fields
from typing import Final

from grader.sandbox.supervisor.frames import (
    FILE_STATUSES,
    KINDS,
    NEVER_UNKNOWN_PLACES,
    PORT_ENDS,
    RESULT_FIELDS,
    RESULT_NUMBERS,
    Cleared,
    Counters,
    Fact,
    Fatal,
    FileBegin,
    FileData,
    Frame,
    HelloBegin,
    HelloEnd,
    KeptBegin,
    KeptEnd,
    KeptSkipped,
    Pong,
    PortClosed,
    PortData,
    PortOpened,
    PutDone,
    ResultFrame,
    StdinRoom,
    StreamData,
    need,
    violation,
)

PROTOCOL_VERSION: Final = 2
MAGIC: Final = b"GRADERSV"
HEADER_BYTES: Final = 16
PAYLOAD_MAX: Final = 65_536
UNKNOWN: Final = 0xFFFF_FFFF_FFFF_FFFF

HEADER: Final = struct.Struct("<HHIQ")
_RESULT: Final = struct.Struct(f"<{RESULT_NUMBERS}Q")


def check_path(path: bytes) -> None:
    """Raise ValueError unless the path is one that the box takes: relative, bounded, without `.` and `..`."""
    parts = path.split(b"/")
    if not path or len(path) > 1023 or b"\0" in path or len(parts) > 32:
        raise ValueError(f"{path!r} is empty, has a NUL, or is longer or deeper than the box takes")
    if any(part in (b"", b".", b"..") or len(part) > 255 for part in parts):
        raise ValueError(f"{path!r} has an empty, '.', '..' or over-long component")


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value


def _unpack(layout: str, payload: bytes, what: str) -> tuple[int, ...]:
    need(len(payload) == struct.calcsize(layout), f"{what} of {len(payload)} bytes")
    return struct.unpack(layout, payload)


def _bounded(data: bytes, most: int, what: str) -> bytes:
    need(0 < len(data) <= most, f"{what} of {len(data)} bytes")
    return data


def _named(names: tuple[str, ...], number: int, what: str) -> str:
    need(number < len(names), f"{what} {number}")
    return names[number]


def _hello(_run: int, p: bytes) -> Frame:
    need(len(p) == 40 and p[:8] == MAGIC and p[10:16] == b"\0" * 6, "a hello that is none")
    return HelloBegin(*struct.unpack_from("<H", p, 8), p[16:32], *struct.unpack_from("<Q", p, 32))


def _fact(_run: int, p: bytes) -> Frame:
    need(len(p) > 8, "a fact without a name")
    errno, size, zero = struct.unpack_from("<IHH", p)
    need(zero == 0 and 0 < size <= 256 and 8 + size <= len(p), "a fact with a bad name")
    return Fact(p[8 : 8 + size].decode("ascii", "backslashreplace"), p[8 + size :], errno)


def _hello_end(_run: int, p: bytes) -> Frame:
    need(not p, "a hello end with content")
    return HelloEnd()


def _put_done(run: int, p: bytes) -> Frame:
    return PutDone(run, *_unpack("<II", p, "PUT_DONE"))


def _counters(run: int, p: bytes) -> Frame:
    return Counters(run, *(_known(n) for n in _unpack("<12Q", p, "COUNTERS")[: len(fields(Counters)) - 1]))


def _stdin_room(run: int, p: bytes) -> Frame:
    return StdinRoom(run, *_unpack("<Q", p, "STDIN_ROOM"))


def _stream_data(run: int, p: bytes) -> Frame:
    need(len(p) > 1 and p[0] in (1, 2), "stream data without a stream")
    return StreamData(run, p[0], p[1:])


def _file(run: int, p: bytes) -> Frame:
    index, status, kind, zero, mode, errno, size, allocated = _unpack("<IBBHIIQQ", p, "FILE")
    need(zero == 0 and status < len(FILE_STATUSES), f"a file of status {status}")
    return FileBegin(run, index, FILE_STATUSES[status], _named(KINDS, kind, "file kind"), mode, errno, size, allocated)


def _file_data(run: int, p: bytes) -> Frame:
    return FileData(run, _bounded(p, PAYLOAD_MAX, "file data"), kept=False)


def _kept_file(run: int, p: bytes) -> Frame:
    need(len(p) > 16 and p[0] in (0, 1) and not any(p[1:8]), "a kept file with bad fields")
    path = p[16:]
    try:
        check_path(path)
    except ValueError as error:
        raise violation(f"a kept file at {error}") from error
    return KeptBegin(run, path, p[0] == 1, *struct.unpack_from("<Q", p, 8))


def _kept_data(run: int, p: bytes) -> Frame:
    return FileData(run, _bounded(p, PAYLOAD_MAX, "kept data"), kept=True)


def _kept_skipped(run: int, p: bytes) -> Frame:
    need(8 <= len(p) <= 8 + 1023 and not any(p[1:4]), "a skipped file with bad fields")
    return KeptSkipped(run, p[8:], _named(KINDS, p[0], "file kind"), *struct.unpack_from("<I", p, 4))


def _kept(run: int, p: bytes) -> Frame:
    complete, files, size, skipped = _unpack("<4Q", p, "KEPT")
    need(complete in (0, 1), "KEPT that is neither complete nor not")
    return KeptEnd(run, complete == 1, files, size, skipped)


def _port_opened(run: int, p: bytes) -> Frame:
    connection, zero = _unpack("<II", p, "PORT_OPENED")
    need(zero == 0, "PORT_OPENED with content")
    return PortOpened(run, connection)


def _port_data(run: int, p: bytes) -> Frame:
    need(len(p) > 4, "port data without data")
    return PortData(run, *struct.unpack_from("<I", p), p[4:])


def _port_closed(run: int, p: bytes) -> Frame:
    connection, how = _unpack("<II", p, "PORT_CLOSED")
    need(0 < how < len(PORT_ENDS), f"a connection that ended as {how}")
    return PortClosed(run, connection, PORT_ENDS[how])


def _result(run: int, p: bytes) -> Frame:
    start = RESULT_NUMBERS * 8
    if not start + 64 <= len(p) <= start + 64 + 1024:
        raise violation(f"RESULT of {len(p)} bytes")
    values = _RESULT.unpack_from(p)
    if any(values[len(RESULT_FIELDS) :]):
        raise violation("RESULT with numbers that version 2 does not have")
    known = [None if value == UNKNOWN else value for value in values]
    numbers = dict(zip(RESULT_FIELDS, known, strict=False))
    if None in known:
        missing = [RESULT_FIELDS[place] for place in NEVER_UNKNOWN_PLACES if known[place] is None]
        if missing:
            raise violation(f"RESULT without {missing[0]}")
    text = p[start + 64 :].decode("ascii", "backslashreplace")
    return ResultFrame(run, numbers, p[start : start + 32], p[start + 32 : start + 64], text)


def _pong(_run: int, p: bytes) -> Frame:
    return Pong(*_unpack("<QQ", p, "PONG"))


def _cleared(_run: int, p: bytes) -> Frame:
    need(_unpack("<II", p, "CLEARED") == (0, 0), "CLEARED with content")
    return Cleared()


def _fatal(_run: int, p: bytes) -> Frame:
    need(8 <= len(p) <= 208, "FATAL of a bad size")
    return Fatal(*struct.unpack_from("<II", p), p[8:].decode("ascii", "backslashreplace"))


_DECODERS: Final[dict[int, Callable[[int, bytes], Frame]]] = {
    **{129: _hello, 130: _fact, 131: _hello_end, 132: _put_done, 133: _counters, 134: _stdin_room},
    **{135: _stream_data, 136: _file, 137: _file_data, 138: _kept_file, 139: _kept_data, 140: _kept_skipped},
    **{160: _port_opened, 161: _port_data, 162: _port_closed},
    **{141: _kept, 142: _result, 143: _pong, 144: _cleared, 145: _fatal},
}
_BOX_WIDE: Final = frozenset({129, 130, 131, 143, 144, 145})
_OF_EITHER: Final = frozenset({132})


class FrameReader:
    """Turns bytes, however they are cut, into frames. Holds less than one frame between two calls."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are complete now. Raises ProtocolViolation; the reader is of no use afterwards."""
        if not self._held:  # mostly whole frames come, and need not be held
            frames, at = _frames_in(data)
            if at < len(data):
                self._held += data[at:]
            return frames
        # Appended to, not joined anew: a box that sends single bytes must not cost a copy of the frame for each.
        self._held += data
        frames, at = _frames_in(self._held)
        del self._held[:at]
        return frames


def _frames_in(data: bytes | bytearray) -> tuple[list[Frame], int]:
    """The whole frames at the beginning of `data`, and where they end."""
    frames: list[Frame] = []
    at, end = 0, len(data)
    while end - at >= HEADER_BYTES:
        kind, flags, length, run_id = HEADER.unpack_from(data, at)
        if flags != 0 or length > PAYLOAD_MAX:
            raise violation(f"a header with flags {flags} and length {length}")
        decoder = _DECODERS.get(kind)
        if decoder is None:
            raise violation(f"a frame of type {kind}")
        if (run_id == 0) != (kind in _BOX_WIDE) and kind not in _OF_EITHER:
            raise violation(f"type {kind} with run id {run_id}")
        start = at + HEADER_BYTES
        if end - start < length:
            break
        at = start + length
        frames.append(decoder(run_id, bytes(data[start:at])))
    return frames, at
