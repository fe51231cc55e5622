"""The body of one request, taken in piece by piece: decompressed as it comes, never larger than allowed."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

KIB, MIB = 1 << 10, 1 << 20
_STEP_BYTES = 64 * KIB
_MOST_MEMBERS = 1_000
"""Of gzip data, one after the other: exporters write one; each costs a look at all that follows."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Bounds of one connection; what is beyond is refused with a status that says so."""

    header_bytes: int = 16 * KIB
    """Request line and headers; also trailers, and one chunk's header."""
    body_bytes: int = 32 * MIB
    """A body as it is sent."""
    decompressed_bytes: int = 64 * MIB
    """A body after decompression."""


class BodyBudget:
    """Bytes that the bodies of all connections together may take. Of one thread, as everything around a connection."""

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self.used_bytes = 0

    def take(self, size: int) -> bool:
        """Whether there was room for `size` more bytes; they are then taken."""
        if self.used_bytes + size > self.total_bytes:
            return False
        self.used_bytes += size
        return True

    def give_back(self, size: int) -> None:
        """These bytes are held no longer."""
        self.used_bytes -= size


class BodyError(Exception):
    """A body that is not taken: the status to answer with, and why in words."""

    def __init__(self, status: int, why: str) -> None:
        self.status = status
        self.why = why
        super().__init__(why)


class Body:
    """Collects one body. `taken_bytes` are held from the budget until `release`."""

    def __init__(self, limits: HttpLimits, budget: BodyBudget, *, is_gzip: bool) -> None:
        self._limits = limits
        self._budget = budget
        self._unzip = zlib.decompressobj(wbits=31) if is_gzip else None
        self._data = bytearray()
        self._members = 1
        self.sent_bytes = 0
        self.taken_bytes = 0

    def add(self, data: bytes) -> None:
        """Take in the next piece. Raises BodyError when it is too much (413), damaged (400), or has no room (429)."""
        self.sent_bytes += len(data)
        if self.sent_bytes > self._limits.body_bytes:
            raise too_large(self._limits)
        if self._unzip is None:
            self._keep(data)
        else:
            self._decompress(data)

    def finish(self) -> bytes:
        """The whole body. Raises BodyError (400) when the compressed data ends in the middle."""
        if self._unzip is not None and not self._unzip.eof:
            raise BodyError(400, "the gzip data of the body ends in the middle")
        return bytes(self._data)

    def release(self) -> None:
        """Forget the body and give its bytes back."""
        self._budget.give_back(self.taken_bytes)
        self.taken_bytes = 0
        self._data = bytearray()
        self._unzip = None

    def _keep(self, data: bytes) -> None:
        if len(self._data) + len(data) > self._limits.decompressed_bytes:
            raise BodyError(
                413,
                f"the body is larger than {self._limits.decompressed_bytes} bytes, decompressed: send smaller batches",
            )
        if not self._budget.take(len(data)):
            raise BodyError(429, "the receiver holds as many bytes as it may: send it again later")
        self.taken_bytes += len(data)
        self._data += data

    def _decompress(self, data: bytes) -> None:
        """Members one after the other are one body (RFC 1952); zeros may pad the end, anything else may not."""
        rest = data
        while rest:
            assert self._unzip is not None
            if self._unzip.eof:
                rest = rest.lstrip(b"\0")
                if not rest:
                    return
                self._members += 1
                if self._members > _MOST_MEMBERS:
                    raise BodyError(413, f"the gzip data of the body has more than {_MOST_MEMBERS} members")
                self._unzip = zlib.decompressobj(wbits=31)
            try:
                self._keep(self._unzip.decompress(rest, _STEP_BYTES))
            except zlib.error as error:
                raise BodyError(400, f"the gzip data of the body is damaged: {error}") from None
            rest = self._unzip.unused_data if self._unzip.eof else self._unzip.unconsumed_tail


def too_large(limits: HttpLimits) -> BodyError:
    """A body that is longer than allowed as it is sent."""
    return BodyError(413, f"the body is larger than {limits.body_bytes} bytes: send smaller batches")
