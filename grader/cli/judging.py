"""What `grader judge` does: what is asked, of which judge, which record is kept, and what is shown."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from grader.capture.sources import needs_folder, traces_of
from grader.cli.console import Console
from grader.cli.interrupts import InterruptedBySignalError, run_interruptible
from grader.cli.items import as_item
from grader.cli.output import Output
from grader.cli.record_choice import NEW_RECORD, RecordChoice
from grader.core.expectation import Task
from grader.core.judging.conditions import JudgeSettings
from grader.core.tools.arguments import ContentRules
from grader.core.traces.content import TextRules
from grader.errors import UsageError
from grader.formats.task_file import trace_source_place
from grader.judge.endpoint import endpoint_from_environment
from grader.judge.presets import load_preset, preset_names
from grader.reports.grading import Grading
from grader.runner.graded import Graded
from grader.runner.judging.call import Asked, earlier_entry, http_judge
from grader.runner.judging.conversation import JudgedEvidence, check_judgeable, judge_evidence
from grader.runner.score import keep_evidence, read_conversation_file


@dataclass(frozen=True)
class JudgeRequest:
    """What the command line asks."""

    conversation: Path | None = None
    traces: tuple[Path, ...] | None = None
    presets: tuple[str, ...] = ()
    objective: str | None = None
    task: Path | None = None
    samples: int | None = None
    rule: str | None = None
    require_trace: str | None = None
    complete: bool = False
    retain_content: bool = True
    reuse: str | None = None
    record: RecordChoice = NEW_RECORD


def judge_request(request: JudgeRequest, console: Console, output: Output) -> int:
    """Ask, write the reports, and give the exit code. Raises GraderError for what cannot be asked."""
    if request.conversation is None:
        raise UsageError("there is no conversation", hint="grader judge CONVERSATION --preset NAME")
    request.record.check()
    task = _task(request)
    source = task.trace.trace_source
    if source is not None and request.traces is None:
        assert request.task is not None
        raise needs_folder(
            source, trace_source_place(request.task), "grader judge CONVERSATION --task TASK --trace FOLDER"
        )
    task = check_judgeable(task, has_trace_source=request.traces is not None)
    earlier = earlier_entry(request.reuse)
    evidence = _evidence(request, request.conversation, source)
    endpoint = endpoint_from_environment()

    async def main() -> Graded:
        async with http_judge(endpoint) as judge:
            return await judge_evidence(evidence, task, judge, reuse=earlier)

    began_s = time.monotonic()
    try:
        graded = run_interruptible(main, console.say)
    except InterruptedBySignalError as stopped:
        return stopped.exit_code
    graded, name = _kept(request, graded)
    console.warnings(graded.warnings)
    item = as_item(graded, name)
    if isinstance(item, Grading):
        item = replace(item, wall_time_s=time.monotonic() - began_s)
    return output.write([item])


def presets_report() -> str:
    """Every preset with its questions."""
    lines: list[str] = []
    for name in preset_names():
        preset = load_preset(name)
        lines.append(f"{name}: {preset.about}")
        lines.extend(f"    {dimension.name}: {dimension.question}" for dimension in preset.dimensions)
    return "\n".join(lines) + "\n"


def _task(request: JudgeRequest) -> Task:
    asked = Asked(presets=request.presets, objective=request.objective, task=request.task)
    task = asked.as_task(None)
    given = {"samples": request.samples, "rule": request.rule, "require_trace": request.require_trace}
    chosen = {name: value for name, value in given.items() if value is not None}
    if not chosen:
        return task
    try:
        settings = JudgeSettings.model_validate({**task.judge.model_dump(mode="json"), **chosen})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = "--" + str(first["loc"][0]).replace("_", "-")
        raise UsageError(f"{option}: {first['msg']}", hint="grader judge --help") from None
    return task.model_copy(update={"judge": settings})


def _evidence(request: JudgeRequest, conversation: Path, source: str | None) -> JudgedEvidence:
    if request.traces is not None and len(set(request.traces)) != len(request.traces):
        raise UsageError("a source of traces is given twice", hint="name it once")
    return JudgedEvidence(
        conversation=read_conversation_file(conversation),
        traces=traces_of(request.traces, source) if request.traces is not None else None,
        complete=request.complete,
        rules=ContentRules(retain_content=request.retain_content),
        text_rules=TextRules(retain_content=request.retain_content),
    )


def _kept(request: JudgeRequest, graded: Graded) -> tuple[Graded, str | None]:
    """What was asked and answered, recorded if that is wanted; and what a user types to name the record."""
    assert request.conversation is not None
    place = request.record.place(request.conversation.resolve().stem)
    if place is None:
        return graded, None
    graded = keep_evidence(graded, place.folder)
    place.has_begun()
    return graded, place.name
