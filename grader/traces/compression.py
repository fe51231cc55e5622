"""Bytes of a source, decompressed when they are gzip or zstd, in pieces and never more than allowed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import BinaryIO

from grader.errors import PrerequisiteError
from grader.traces.span import ReadNotes

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
PIECE_BYTES = 1 << 16
_ZSTD_STEP_BYTES = 512
FREE_BYTES = 256 << 20
MAX_RATIO = 200
"""A compressed source may grow to 256 MiB, or to 200 times its size: traces shrink to a twentieth, bombs much more."""


def encoding_of(head: bytes) -> str:
    """`gzip`, `zstd` or an empty string, from the first bytes."""
    if head.startswith(GZIP_MAGIC):
        return "gzip"
    return "zstd" if head.startswith(ZSTD_MAGIC) else ""


def pieces(stream: BinaryIO, notes: ReadNotes) -> tuple[Iterator[bytes], str]:
    """The content of a stream in pieces, and the compression it had.

    A cut or damaged end is noted (`is_cut`), content over the cap is not read (`capacity`).
    Raises PrerequisiteError when zstd is needed and not installed.
    """
    head = stream.read(PIECE_BYTES)
    encoding = encoding_of(head)
    if encoding == "gzip":
        return _capped(_gunzip(_raw(head, stream), notes), notes), encoding
    if encoding == "zstd":
        return _capped(_unzstd(_raw(head, stream), notes), notes), encoding
    return _raw(head, stream), encoding


def _raw(head: bytes, stream: BinaryIO) -> Iterator[bytes]:
    piece = head
    while piece:
        yield piece
        piece = stream.read(PIECE_BYTES)


def _gunzip(raw: Iterator[bytes], notes: ReadNotes) -> Iterator[tuple[bytes, int]]:
    """Pieces with the number of compressed bytes read so far; several members one after the other are one stream."""
    unzip, taken = zlib.decompressobj(wbits=31), 0
    for piece in raw:
        taken += len(piece)
        data = piece
        while data:
            if unzip.eof:
                data = data.lstrip(b"\0")  # padding after a member
                unzip = zlib.decompressobj(wbits=31) if data else unzip
                continue
            try:
                out = unzip.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                notes.is_cut = True
                notes.warnings.add(f"the gzip data is damaged: {error}")
                return
            if out:
                yield out, taken
            data = unzip.unused_data if unzip.eof else unzip.unconsumed_tail
    if not unzip.eof:
        yield unzip.flush(PIECE_BYTES), taken
        notes.is_cut = notes.is_cut or not unzip.eof


def _unzstd(raw: Iterator[bytes], notes: ReadNotes) -> Iterator[tuple[bytes, int]]:
    try:
        import zstandard
    except ImportError:
        raise PrerequisiteError(
            "the trace is compressed with zstd, and the package zstandard is not installed",
            hint="pip install 'grader[traces]', or decompress it first: zstd -d FILE",
        ) from None
    unzip, taken = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj(), 0
    started = False
    for piece in raw:
        data = piece
        while data:
            if unzip.eof:
                unzip, started = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj(), False
            # Small steps: 512 bytes can hold 128 repeated blocks of 128 KiB each, so a step gives 16 MiB at most.
            step, data = data[:_ZSTD_STEP_BYTES], data[_ZSTD_STEP_BYTES:]
            try:
                out = unzip.decompress(step)
            except zstandard.ZstdError as error:
                notes.is_cut = True
                notes.warnings.add(f"the zstd data is damaged: {error}")
                return
            started = True
            rest = unzip.unused_data if unzip.eof else b""
            taken += len(step) - len(rest)
            data = rest + data
            if out:
                yield out, taken
    notes.is_cut = notes.is_cut or (started and not unzip.eof)


def _capped(parts: Iterator[tuple[bytes, int]], notes: ReadNotes) -> Iterator[bytes]:
    total = 0
    for piece, taken in parts:
        allowed = max(FREE_BYTES, MAX_RATIO * taken) - total
        if len(piece) > allowed:
            notes.capacity = f"the compressed source grows to more than {MAX_RATIO} times its size"
            yield piece[:allowed]
            return
        total += len(piece)
        yield piece
