"""Names of submissions that are no UTF-8, or hold half a character: they are graded, shown and recorded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grader.core.canonical import digest
from grader.errors import SubmissionError
from grader.submission import Submission


def test_a_file_whose_name_is_no_utf8_has_a_name_that_can_be_recorded(tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), b"b\xff.py")
    with open(path, "wb") as file:
        file.write(b"print()")
    submission = Submission.from_path(os.fsdecode(path), entry="b\udcff.py")
    assert submission.name == "b\\udcff.py"
    assert digest(submission.name)
    assert [file.path for file in submission.files] == [b"b\xff.py"]


def test_half_a_character_in_a_name_can_be_recorded() -> None:
    assert Submission.from_source("x", name="a\ud800").name == "a\\ud800"


def test_an_entry_point_with_half_a_character_is_refused() -> None:
    with pytest.raises(SubmissionError, match="is not among its files"):
        Submission.from_files({"main.py": "x"}, entry="a\ud800")
