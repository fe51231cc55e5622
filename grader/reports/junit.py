"""JUnit XML, for continuous integration: false is a failure, undetermined an error, what was not run is skipped.

A suite is a submission, a test case is a cell (a case under one profile), a condition that has none, or a condition
that combines others. So a verdict that is false has a failure, also where nothing but a `not` is false.
There is no official schema; the attributes are those that the common readers share.
"""

from __future__ import annotations

from collections.abc import Sequence

from grader.core.tri import Tri
from grader.core.verdict import CellVerdict, ConditionVerdict, Finding
from grader.reports.evidence import condition_label, coverage_in_words, size_in_words
from grader.reports.grading import Grading, Refusal, cell_times_s, composites, deciding, leaves, never_ran, rows
from grader.reports.sanitize import xml_attribute, xml_text
from grader.reports.traced import cell_name


def junit_report(graded: Sequence[Grading | Refusal]) -> str:
    """The XML document; it ends in a newline."""
    suites = [_refused(item) if isinstance(item, Refusal) else _suite(item) for item in graded]
    return '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="grader">\n' + "".join(suites) + "</testsuites>\n"


def _suite(item: Grading) -> str:
    times = cell_times_s(item)
    cases: list[str] = []
    counted = {"failure": 0, "error": 0, "skipped": 0}
    for row in rows(item.verdict):
        for cell in row.case.cells:
            element = _cell_element(cell)
            wall_time_s = times.get((row.program, row.case.index, cell.profile))
            cases.append(_case(item.submission, f"{row.label} [{cell.profile}]", element, wall_time_s))
            _count(counted, element)
    for condition, leaf in zip(item.task.leaves(), leaves(item.verdict), strict=True):
        for found in leaf.cells:
            element = _cell_element(found.cell)
            name = f"{leaf.condition_type} {condition_label(condition)} {cell_name(found)} [{found.cell.profile}]"
            cases.append(_case(item.submission, name, element, None))
            _count(counted, element)
        if not leaf.cases and not leaf.cells:
            element = _leaf_element(leaf)
            name = f"{leaf.condition_type} {condition_label(condition)}".rstrip()
            cases.append(_case(item.submission, name, element, None))
            _count(counted, element)
    for place, condition in composites(item.verdict):
        element = _leaf_element(condition)
        cases.append(_case(item.submission, f"{condition.condition_type} (condition {place})", element, None))
        _count(counted, element)
    head = (
        f"  <testsuite name={xml_attribute(item.submission)} tests={xml_attribute(str(len(cases)))}"
        f' failures="{counted["failure"]}" errors="{counted["error"]}" skipped="{counted["skipped"]}"'
        f' time="{item.wall_time_s if item.wall_time_s is not None else sum(times.values()):.3f}">\n'
    )
    properties = [("verdict", item.verdict.value.value), ("rationale", item.verdict.rationale)]
    if item.selection is not None and not item.selection.is_whole:
        properties.append(("selection", str(item.selection)))
    if item.folder is not None:
        properties.append(("record", item.folder))
    if item.tools is not None:
        properties.append(("evidence", f"{coverage_in_words(item.tools)}; {size_in_words(item.tools)}"))
    properties.extend(("warning", warning) for warning in item.warnings)
    listed = "".join(f"      <property name={xml_attribute(n)} value={xml_attribute(v)}/>\n" for n, v in properties)
    return f"{head}    <properties>\n{listed}    </properties>\n{''.join(cases)}  </testsuite>\n"


def _refused(item: Refusal) -> str:
    element = _element("error", item.code, item.problem.message, str(item.problem))
    case = _case(item.submission, "submission", element, None)
    name = xml_attribute(item.submission)
    return (
        f'  <testsuite name={name} tests="1" failures="0" errors="1" skipped="0" time="0.000">\n{case}  </testsuite>\n'
    )


def _cell_element(cell: CellVerdict) -> str:
    if cell.value is Tri.TRUE:
        return ""
    if never_ran(cell):
        return f"      <skipped message={xml_attribute('not run')}/>\n"
    return _not_true(cell.value, deciding(cell), cell.rationale, cell.findings)


def _leaf_element(leaf: ConditionVerdict) -> str:
    if leaf.value is Tri.TRUE:
        return ""
    return _not_true(leaf.value, leaf.findings[0] if leaf.findings else None, leaf.rationale, leaf.findings)


def _not_true(value: Tri, finding: Finding | None, rationale: str, findings: Sequence[Finding]) -> str:
    kind = "failure" if value is Tri.FALSE else "error"
    code = finding.code.value if finding is not None else value.value
    message = finding.detail or finding.code.meaning if finding is not None else rationale
    body = "\n".join(
        [rationale, *(f"{found} (x{found.count})" if found.count > 1 else str(found) for found in findings)]
    )
    return _element(kind, code, message, body)


def _element(kind: str, code: str, message: str, body: str) -> str:
    return f"      <{kind} type={xml_attribute(code)} message={xml_attribute(message)}>{xml_text(body)}</{kind}>\n"


def _case(submission: str, name: str, element: str, wall_time_s: float | None) -> str:
    time = "" if wall_time_s is None else f' time="{wall_time_s:.3f}"'
    head = f"    <testcase classname={xml_attribute(submission)} name={xml_attribute(name)}{time}"
    return f"{head}/>\n" if element == "" else f"{head}>\n{element}    </testcase>\n"


def _count(counted: dict[str, int], element: str) -> None:
    for kind in counted:
        counted[kind] += element.lstrip().startswith(f"<{kind} ")
