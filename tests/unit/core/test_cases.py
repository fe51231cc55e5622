"""What no box and no kernel would take is refused in the task: it must never be held against a program."""

import pytest
from pydantic import ValidationError

import grader.matchers  # noqa: F401  # pyright: ignore[reportUnusedImport] - registers the matchers
from grader.core.cases import ProgramCase
from grader.core.submission_files import SubmissionFile
from grader.errors import SubmissionError
from grader.submission import Submission

X = {"equals": "x"}


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ({"arguments": ["x" * 131_072]}, "an argument of 131,072 bytes: the kernel takes 131,071"),
        ({"environment": {"A": "x" * 131_070}}, "'A': the kernel takes 131,071 bytes with its name"),
        ({"arguments": ["x" * 130_000] * 15}, "arguments and environment take 1,950,135 bytes"),
        ({"environment": {f"V{i:02}": "x" * 130_000 for i in range(15)}}, "arguments and environment take"),
        ({"arguments": [""] * 220_000}, "arguments and environment take 1,980,000 bytes"),
        ({"output_files": {f"f{i}": X for i in range(257)}}, "257 output files: at most 256 are read back"),
        ({"output_files": {"a" * 256: X}}, "255 bytes a part and 1,023 in all"),
        ({"output_files": {"/".join(["a" * 255] * 4) + "/": X}}, "must not contain empty parts"),
        ({"output_files": {"/".join(["a" * 255] * 4) + "/b": X}}, "255 bytes a part and 1,023 in all"),
        ({"files": {"/".join(["a"] * 33): "x"}}, "32 parts deep, not 33"),
        ({"files": {"a": "x", "a/b/c": "y"}}, "b'a/b/c' is in a folder that is a file"),
    ],
)
def test_more_than_can_be_given_is_refused(entries: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        ProgramCase.model_validate(entries)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "entries",
    [
        {"arguments": ["x" * 131_071]},
        {"environment": {"A": "x" * 131_069}},
        {"arguments": ["x" * 130_000] * 14},
        {"output_files": {f"f{i}": X for i in range(256)}},
        {"output_files": {"/".join(["a" * 255] * 4): X}},
        {"files": {"/".join(["a"] * 32): "x", "ab": "x", "abc/d": "y", "a b": ""}},
    ],
)
def test_as_much_as_can_be_given_is_allowed(entries: dict[str, object]) -> None:
    ProgramCase.model_validate(entries)


def test_a_submission_has_no_longer_paths_either() -> None:
    path = b"/".join([b"a" * 255] * 4) + b"/b"
    with pytest.raises(SubmissionError, match="1,023 in all"):
        Submission((SubmissionFile(path, b"x"),), "s")
