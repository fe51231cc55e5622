"""What `grader show` writes of a record and of its cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from grader.cli.console import Console
from grader.cli.items import as_item
from grader.core.agent_tasks import asks_for_traces
from grader.core.outcomes import BoxSeen
from grader.errors import Place, UsageError
from grader.reports.grading import Grading, rows
from grader.reports.sanitize import safe_line
from grader.reports.scored import calls_report, tool_names
from grader.reports.show import find_rows, show_report
from grader.reports.text import TextOptions, text_report
from grader.runner.replay import replay_entry
from grader.store import Record, RecordedEntry, find_record, open_record


def record_lines(name: str, submission: str | None, console: Console) -> str:
    """What is in a record: where it ran, and every submission with all its cases."""
    record = open_record(find_record(name))
    look = TextOptions(color=console.result_colored, show_all=True)
    lines = [f"{line}\n" for line in _about(record)]
    for entry, grading in _gradings(record, name, submission):
        lines.extend(f"{line}\n" for line in ("", *_about_entry(entry)))
        lines.append(text_report([grading], options=look))
    return "".join(lines)


def show_cases(name: str, submission: str | None, case: str, console: Console) -> str:
    """The runs of the cases that `case` names, of every submission that has one of that name; or a tool's calls."""
    record = open_record(find_record(name))
    look = TextOptions(color=console.result_colored)
    parts: list[str] = []
    labels: list[str] = []
    for entry, grading in _gradings(record, name, submission):
        if grading.tools is not None:
            calls = calls_report(grading.tools, case)
            labels.extend(tool_names(grading.tools))
            parts.extend([calls] if calls is not None else [])
            continue
        chosen = find_rows(grading, case)
        labels.extend(row.label for row in rows(grading.verdict))
        if chosen:
            head = f"{safe_line(grading.submission)}\n" if len(record) > 1 and entry.submission is not None else ""
            parts.append(head + show_report(_with_exports(grading), chosen, look))
    if not parts:
        known = ", ".join(list(dict.fromkeys(labels))[:10])
        kind = "case" if record.submission_names()[0] else "tool"
        known = known or "none"
        raise UsageError(f"no {kind} is named {case!r}", where=Place(str(record.folder)), hint=f"{kind}s are: {known}")
    return "\n".join(parts)


def _with_exports(grading: Grading) -> Grading:
    """With what each run says it did, where the task asks for it."""
    if grading.plan is None or grading.runs is None or not asks_for_traces(grading.task):
        return grading
    from grader.runner.exported import tools_of_runs  # the readers of traces are not loaded for other tasks

    return replace(grading, exported=tools_of_runs(grading.plan, grading.runs))


def _gradings(record: Record, name: str, submission: str | None) -> Iterator[tuple[RecordedEntry, Grading]]:
    found = False
    for entry in record:
        if submission is not None and (entry.submission is None or entry.submission.name != submission):
            continue
        found = True
        item = as_item(replay_entry(record, entry, None), name, is_replay=True)
        assert isinstance(item, Grading)
        yield entry, item
    if not found:
        known = ", ".join(record.submission_names()[:10]) or "none"
        said = "the record is empty" if submission is None else f"no submission is named {submission!r}"
        raise UsageError(said, where=Place(str(record.folder)), hint=f"submissions are: {known}")


def _about(record: Record) -> Iterator[str]:
    yield f"record      {safe_line(str(record.folder))}"
    state = "complete" if record.is_sealed else "interrupted: grader run --resume goes on with it"
    yield f"begun       {safe_line(record.created)}, {state}"
    for number, session in enumerate(record.sessions):
        host = ", ".join(f"{key} {value}" for key, value in sorted(session.host.items()))
        if host or session.isolation:  # of evidence that was scored, nothing ran
            yield f"{'ran on' if number == 0 else 'resumed on':<11} {safe_line(host) or 'unknown'}"
            yield f"isolation   {safe_line(session.isolation)}"
        for lacking in session.not_enforced:
            yield f"not enforced: {safe_line(lacking)}"


def _about_entry(entry: RecordedEntry) -> Iterator[str]:
    if entry.submission is not None:
        yield f"submission  {safe_line(entry.submission.name)}  {entry.submission.digest}"
    for profile in entry.profiles:
        yield f"profile     {safe_line(profile.name)}  {safe_line(profile.image_id)}"
    outcomes = [run.outcome for run in entry.runs if run.outcome is not None]
    yield from _about_boxes([outcome.box for outcome in outcomes if outcome.box is not None])


def _about_boxes(boxes: Sequence[BoxSeen]) -> Iterator[str]:
    """What was seen in the boxes of an entry's runs before any program was in them."""
    networks = {(box.interfaces, box.routes) for box in boxes}
    for interfaces, routes in sorted(networks):
        routes_text = "no route" if routes == 0 else f"{routes} route{'s' if routes > 1 else ''}"
        yield f"network     {safe_line(', '.join(interfaces)) or 'no interface'}; {routes_text}"
    for lacking in sorted({lacking for box in boxes for lacking in box.not_enforced}):
        yield f"not enforced: {safe_line(lacking)}"
