"""Whatever a task file holds, it loads or is refused with places; nothing else ever comes out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from grader.errors import Problem, TaskError
from grader.formats.task_file import load_task
from grader.formats.task_lint import lint

WORDS = [
    "objective",
    "runtime_profiles",
    "limits",
    "conditions",
    "trace",
    "condition_type",
    "program_behaves",
    "cases",
    "cases_from",
    "repetitions",
    "name",
    "stdin",
    "stdout",
    "stderr",
    "files",
    "output_files",
    "arguments",
    "environment",
    "exit_code",
    "any",
    "equals",
    "contains",
    "regex",
    "lines",
    "tokens",
    "json",
    "digest",
    "all_of",
    "any_of",
    "not",
    "file",
    "base64",
    "text",
    "cpu_time_s",
    "memory_bytes",
    "condition",
    "tools_called",
    "tools",
    "*.in",
    "x.in",
    "../x",
    "content",
    "expected",
    "newlines",
    "float_absolute",
    "clock_skew_tolerance_ns",
]
SCALARS: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=8)
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=25,
)
CASES: st.SearchStrategy[Any] = st.dictionaries(
    st.sampled_from(["name", "stdin", "stdout", "stderr", "files", "output_files", "arguments", "environment",
                     "exit_code", "limits"]), VALUES, max_size=6,
)  # fmt: skip
PROGRAMS: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"condition_type": st.just("program_behaves")},
    optional={
        "cases": st.lists(CASES | VALUES, max_size=3) | VALUES,
        "cases_from": CASES | VALUES,
        "repetitions": VALUES,
    },
)
CONDITIONS: st.SearchStrategy[Any] = st.recursive(
    PROGRAMS | VALUES,
    lambda inner: st.fixed_dictionaries(
        {"condition_type": st.sampled_from(["all_of", "any_of", "not", "tools_called"])},
        optional={"conditions": st.lists(inner, max_size=2), "condition": inner, "tools": VALUES},
    ),
    max_leaves=4,
)
TASKS: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"conditions": st.lists(CONDITIONS, min_size=1, max_size=2) | VALUES},
    optional={"limits": VALUES, "runtime_profiles": VALUES, "trace": VALUES, "objective": VALUES},
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TASKS | VALUES)
@example({"conditions": [{"condition_type": "program_behaves", "cases": [{"stdout": {"json": None}}]}]})
@example({"conditions": [{"condition_type": "program_behaves", "cases_from": {"stdout": {"tokens": "*.in"}}}]})
@example({"conditions": [{"condition_type": "program_behaves", "cases_from": {"files": {"a": "*.in"}}}]})
@example({"conditions": [{"condition_type": "program_behaves", "cases_from": {"stdin": "*.in", "stdout": {}}}]})
def test_a_task_loads_or_is_refused_with_places(tmp_path: Path, value: object) -> None:
    (tmp_path / "x.in").write_text("1")
    file = tmp_path / "task.yaml"
    file.write_text(json.dumps(value))  # every JSON text that Python writes is YAML, but NaN, which is then text
    for problem in problems_of(file):
        assert problem.where is not None
        assert problem.where.line is not None
        assert "validation error" not in problem.message
        assert "pydantic" not in str(problem)
    found = lint(file)
    assert all(problem.where is not None for problem in (*found.problems, *found.warnings))


def problems_of(file: Path) -> tuple[Problem, ...]:
    try:
        load_task(file)
    except TaskError as error:
        return error.problems
    return ()
