"""Executes submitted programs in Docker and says whether they behave: true, false, or undetermined.

    import grader

    verdict = grader.grade_sync("task", "solution.py")
    verdict.value is grader.Tri.TRUE

The names below are imported when they are first used, so that `import grader` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.api import Choice, Runner, grade, grade_sync, score
    from grader.capture.local import LocalTraceCapture
    from grader.capture.request import CapturedRequest
    from grader.core.cases import InputFile, OutputFile, ProgramBehaves, ProgramCase
    from grader.core.conditions import AllOf, AnyOf, Condition, Not
    from grader.core.expectation import Expectation, Task
    from grader.core.judging.conditions import (
        JudgeSettings,
        MatchesObjective,
        MeetsDimensions,
        TraceEvidenceRequirement,
        VoteRule,
    )
    from grader.core.judging.dimensions import Category, Dimension, Grade, Preset
    from grader.core.limits import Limits
    from grader.core.observation import Acquisition, Observation
    from grader.core.reasons import ReasonCode, ReasonKind
    from grader.core.tools.conditions import (
        ToolArgumentRequirement,
        ToolCallRequirement,
        ToolPrecededBy,
        ToolsCalled,
        ToolsCalledInOrder,
        ToolsNotCalled,
    )
    from grader.core.tri import Tri
    from grader.core.verdict import CaseVerdict, CellVerdict, ConditionVerdict, Finding, RunVerdict, Verdict
    from grader.errors import (
        GraderError,
        PrerequisiteError,
        RecordError,
        SubmissionError,
        TaskError,
        TraceError,
        UsageError,
    )
    from grader.formats.task_file import load_task
    from grader.judge.presets import load_preset_file
    from grader.runner.graded import Graded
    from grader.runner.grading import Watcher
    from grader.runner.judging.call import judge_conversation, judge_conversation_sync
    from grader.runner.replay import replay
    from grader.submission import Submission

_HOMES = {
    "grader.api": ("Choice", "Runner", "grade", "grade_sync", "score"),
    "grader.capture.local": ("LocalTraceCapture",),
    "grader.capture.request": ("CapturedRequest",),
    "grader.core.cases": ("InputFile", "OutputFile", "ProgramBehaves", "ProgramCase"),
    "grader.core.conditions": ("AllOf", "AnyOf", "Condition", "Not"),
    "grader.core.expectation": ("Expectation", "Task"),
    "grader.core.judging.dimensions": ("Category", "Dimension", "Grade", "Preset"),
    "grader.core.judging.conditions": (
        "JudgeSettings",
        "MatchesObjective",
        "MeetsDimensions",
        "TraceEvidenceRequirement",
        "VoteRule",
    ),
    "grader.core.limits": ("Limits",),
    "grader.core.observation": ("Acquisition", "Observation"),
    "grader.core.reasons": ("ReasonCode", "ReasonKind"),
    "grader.core.tools.conditions": (
        "ToolArgumentRequirement",
        "ToolCallRequirement",
        "ToolPrecededBy",
        "ToolsCalled",
        "ToolsCalledInOrder",
        "ToolsNotCalled",
    ),
    "grader.core.tri": ("Tri",),
    "grader.core.verdict": ("CaseVerdict", "CellVerdict", "ConditionVerdict", "Finding", "RunVerdict", "Verdict"),
    "grader.errors": (
        "GraderError",
        "PrerequisiteError",
        "RecordError",
        "SubmissionError",
        "TaskError",
        "TraceError",
        "UsageError",
    ),
    "grader.formats.task_file": ("load_task",),
    "grader.runner.graded": ("Graded",),
    "grader.runner.grading": ("Watcher",),
    "grader.judge.presets": ("load_preset_file",),
    "grader.runner.judging.call": ("judge_conversation", "judge_conversation_sync"),
    "grader.runner.replay": ("replay",),
    "grader.submission": ("Submission",),
}

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

# These names read plain data (`Task.model_validate(...)`), where any condition or matcher may stand: all are registered
# before the first of them is given out, in whatever order a caller imports.
_READ_PLAIN_DATA = frozenset(
    {
        "grader.core.cases",
        "grader.core.conditions",
        "grader.core.expectation",
        "grader.core.judging.conditions",
        "grader.core.tools.conditions",
    }
)
_REGISTER = ("grader.core.cases", "grader.core.judging.conditions", "grader.core.tools.conditions", "grader.matchers")

__all__ = [
    "Acquisition",
    "AllOf",
    "AnyOf",
    "CapturedRequest",
    "CaseVerdict",
    "Category",
    "CellVerdict",
    "Choice",
    "Condition",
    "ConditionVerdict",
    "Dimension",
    "Expectation",
    "Finding",
    "Grade",
    "Graded",
    "GraderError",
    "InputFile",
    "JudgeSettings",
    "Limits",
    "LocalTraceCapture",
    "MatchesObjective",
    "MeetsDimensions",
    "Not",
    "Observation",
    "OutputFile",
    "PrerequisiteError",
    "Preset",
    "ProgramBehaves",
    "ProgramCase",
    "ReasonCode",
    "ReasonKind",
    "RecordError",
    "RunVerdict",
    "Runner",
    "Submission",
    "SubmissionError",
    "Task",
    "TaskError",
    "ToolArgumentRequirement",
    "ToolCallRequirement",
    "ToolPrecededBy",
    "ToolsCalled",
    "ToolsCalledInOrder",
    "ToolsNotCalled",
    "TraceError",
    "TraceEvidenceRequirement",
    "Tri",
    "UsageError",
    "Verdict",
    "VoteRule",
    "Watcher",
    "grade",
    "grade_sync",
    "judge_conversation",
    "judge_conversation_sync",
    "load_preset_file",
    "load_task",
    "replay",
    "score",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'grader' has no attribute {name!r}")
    if home in _READ_PLAIN_DATA:
        for registered in _REGISTER:
            import_module(registered)
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
