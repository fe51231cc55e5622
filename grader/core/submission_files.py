"""The files of a submission, and the fingerprint that identifies them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from grader.core.bytes_field import plain_bytes
from grader.core.canonical import digest, sha256_hex


@dataclass(frozen=True, slots=True)
class SubmissionFile:
    """One file of a submission: its path inside the submission, its bytes, and whether it is executable."""

    path: bytes
    content: bytes
    executable: bool = False


def submission_digest(files: Iterable[SubmissionFile]) -> str:
    """SHA-256 (hex) that identifies a submission: over path, executable bit and content of its files, sorted by path.

    Neither the submission's name nor the form in which it came (file, folder, archive) is part of it.
    """
    ordered = sorted(files, key=lambda file: file.path)
    return digest([[plain_bytes(file.path), file.executable, sha256_hex(file.content)] for file in ordered])
