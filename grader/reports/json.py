"""The report for programs: JSON, ASCII only, so that no terminal can be moved by it either."""

from __future__ import annotations

import json
from collections.abc import Sequence

from grader.core.tri import all_of
from grader.core.verdict import ConditionCell, ConditionVerdict
from grader.reports.evidence import plain_evidence
from grader.reports.grading import Grading, Refusal, cell_times_s, leaves, program_leaves, sandbox_time_s
from grader.reports.judged import plain_judgement

SCHEMA_VERSION = 1


def json_report(graded: Sequence[Grading | Refusal], *, exit_code: int | None = None) -> str:
    """One JSON object with every submission; it ends in a newline."""
    values = [item.verdict.value for item in graded if isinstance(item, Grading)]
    report: dict[str, object] = {
        "schema_version": SCHEMA_VERSION,
        "verdict": all_of(values).value if values else None,
        "exit_code": exit_code,
        "submissions": [plain_grading(item) for item in graded],
    }
    return json.dumps(report, ensure_ascii=True, indent=2) + "\n"


def jsonl_report(graded: Sequence[Grading | Refusal]) -> str:
    """A line a submission, each a JSON object of its own."""
    return "".join(jsonl_line(item) for item in graded)


def jsonl_line(item: Grading | Refusal) -> str:
    """One submission on one line, with its newline."""
    return json.dumps({"schema_version": SCHEMA_VERSION, **plain_grading(item)}, ensure_ascii=True) + "\n"


def plain_grading(item: Grading | Refusal) -> dict[str, object]:
    """A submission as plain data."""
    if isinstance(item, Refusal):
        return {
            "submission": _ascii_safe(item.submission),
            "refused": {
                "code": item.code,
                "where": str(item.problem.where) if item.problem.where is not None else None,
                "message": item.problem.message,
                "hint": item.problem.hint,
            },
        }
    verdict = item.verdict
    scored: dict[str, object] = {}
    if item.tools is not None:
        scored["evidence"] = plain_evidence(_ascii_safe(item.submission), item.tools)
        scored["warnings"] = list(item.warnings)
    if item.judged is not None:
        scored["judge"] = plain_judgement(item.judged)
        scored["warnings"] = list(item.warnings)
    return {
        "submission": _ascii_safe(item.submission) if item.tools is None and item.judged is None else None,
        "submission_digest": verdict.submission,
        "verdict": verdict.value.value,
        "reasons": [finding.code.value for finding in verdict.findings],
        "rationale": verdict.rationale,
        "inducible": verdict.inducible,
        "expectation": verdict.expectation,
        "observations": list(verdict.observations),
        "selection": item.selection.model_dump(mode="json") if item.selection is not None else None,
        "record": item.folder,
        "wall_time_s": item.wall_time_s,
        "sandbox_time_s": sandbox_time_s(item),
        "conditions": [condition.model_dump(mode="json") for condition in verdict.conditions],
        "cells": _cells(item),
        **scored,
    }


def _cells(item: Grading) -> list[dict[str, object]]:
    """The cells in one flat list, what most programs want to read: of programs first, then of other conditions."""
    times = cell_times_s(item)
    found: list[dict[str, object]] = []
    for program, (place, leaf) in enumerate(program_leaves(item.verdict)):
        for case in leaf.cases:
            for cell in case.cells:
                wall_time_s = times.get((program, case.index, cell.profile))
                told = ConditionCell(program=program, case=case.index, name=case.name, cell=cell)
                found.append(_cell(told, place, leaf, wall_time_s))
    for place, leaf in enumerate(leaves(item.verdict)):
        found.extend(_cell(told, place, leaf, None) for told in leaf.cells)
    return found


def _cell(told: ConditionCell, place: int, leaf: ConditionVerdict, wall_time_s: float | None) -> dict[str, object]:
    """One cell. `place`: that of its condition among the leaves of the task."""
    return {
        "condition": place,
        "condition_type": leaf.condition_type,
        "program": told.program,
        "case": told.case,
        "name": told.name,
        "profile": told.cell.profile,
        "verdict": told.cell.value.value,
        "reasons": [finding.code.value for finding in told.cell.findings],
        "rationale": told.cell.rationale,
        "runs": [run.value.value if not run.is_missing else "missing" for run in told.cell.runs],
        "wall_time_s": wall_time_s,
    }


def _ascii_safe(text: str) -> str:
    """A name with bytes that are not UTF-8 stays valid Unicode."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
