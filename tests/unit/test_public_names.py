"""The public names: each can be had, and reads plain data whatever else was imported before it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import grader

EVERY_KIND = """
from grader import {name}
conditions = [
    {{"condition_type": "program_behaves", "cases": [{{"stdout": {{"json": {{"expected": [1]}}}}}}]}},
    {{
        "condition_type": "tools_called",
        "tools": [{{"name": "a", "arguments": [{{"name": "x", "matcher": {{"equals": "b"}}}}]}}],
    }},
    {{"condition_type": "not", "condition": {{"condition_type": "matches_objective", "objective": "it helps"}}}},
]
"""
READERS = {
    "Task": "{name}.model_validate({{'conditions': conditions}})",
    "Expectation": "{name}.model_validate({{'conditions': conditions}})",
    "AllOf": "{name}.model_validate({{'conditions': conditions}})",
    "Not": "{name}.model_validate({{'condition': conditions[1]}})",
    "ProgramBehaves": "{name}.model_validate({{'cases': conditions[0]['cases']}})",
    "ProgramCase": "{name}.model_validate(conditions[0]['cases'][0])",
    "ToolsCalled": "{name}.model_validate({{'tools': conditions[1]['tools']}})",
}


@pytest.mark.parametrize("name", READERS)
def test_a_name_reads_plain_data_in_a_process_that_imported_nothing_else(name: str) -> None:
    code = (EVERY_KIND + READERS[name]).format(name=name)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", grader.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(grader, name) is not None
    assert name in dir(grader)


def test_no_other_name_is() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        grader.nothing  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue, reportUnusedExpression]
