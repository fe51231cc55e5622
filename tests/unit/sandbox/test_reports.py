"""What a file that could not be read back means: the program's doing, or ours."""

from __future__ import annotations

import errno

import pytest

from grader.core.outcomes import FileOutcome
from grader.sandbox.docker.reports import file_outcome
from grader.sandbox.supervisor.frames import FileStatus
from grader.sandbox.supervisor.results import CollectedFile


def collected(
    status: FileStatus, *, error: int = 0, kind: str = "", content: bytes | None = None
) -> FileOutcome | None:
    return file_outcome(CollectedFile(b"out", status, kind, 0o644, error, 5, content))


def test_a_regular_file_is_kept_whole() -> None:
    outcome = collected("regular", content=b"hello")
    assert outcome is not None
    assert outcome.captured is not None
    assert (outcome.status, outcome.captured.kept, outcome.captured.is_complete) == ("regular", b"hello", True)


@pytest.mark.parametrize("error", [errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOTDIR, errno.EXDEV])
def test_what_the_program_made_unreadable_is_its_doing(error: int) -> None:
    outcome = collected("refused", error=error)
    assert outcome is not None
    assert outcome.status == "refused"
    assert outcome.captured is None
    assert outcome.detail


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EINTR])
def test_what_we_failed_at_is_not_collected(error: int) -> None:
    assert collected("refused", error=error) is None


def test_a_file_over_the_total_is_too_large_to_keep_not_a_fault() -> None:
    outcome = collected("refused")
    assert outcome is not None
    assert outcome.status == "too_large"


def test_the_kind_of_what_is_no_file_is_told() -> None:
    outcome = collected("not_regular", kind="fifo")
    assert outcome is not None
    assert (outcome.status, outcome.kind) == ("not_regular", "fifo")
