"""What was kept of a value that a program produced: evidence for matchers."""

from __future__ import annotations

from dataclasses import dataclass

from grader.core.canonical import sha256_hex


@dataclass(frozen=True, slots=True)
class Captured:
    """Bytes that a program produced: the kept prefix, and length and SHA-256 of *all* that was seen.

    `kept` may be shorter than `total_bytes`; then it is a prefix, and `sha256` (64 hex digits) is that of the whole.
    """

    kept: bytes
    total_bytes: int
    sha256: str

    @classmethod
    def whole(cls, data: bytes) -> Captured:
        """A value that was kept completely."""
        return cls(data, len(data), sha256_hex(data))

    @property
    def is_complete(self) -> bool:
        """Whether every byte was kept."""
        return len(self.kept) == self.total_bytes
