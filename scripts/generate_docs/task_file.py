"""docs/reference/task-file.md: the fields of task.yaml, read from the models that check them."""

from __future__ import annotations

from pydantic import BaseModel

from grader.core.cases import InputFile, OutputFile, ProgramBehaves, ProgramCase
from grader.core.conditions import condition_class, condition_types
from grader.core.expectation import Expectation, Task, TraceSettings
from grader.core.judging.conditions import JudgeSettings
from grader.core.limits import BUILT_IN_DEFAULTS, Limits
from grader.core.matching import matcher_names
from grader.formats.case_reader import FROM_FILE
from grader.formats.task_file import FILE_NAME
from grader.formats.task_folder import LARGEST_FILE_BYTES, LARGEST_TOTAL_BYTES
from grader.scorers.runs import size
from grader.yaml_source import LARGEST_BYTES
from scripts.generate_docs.source import default_of, fields_of, first_paragraph, table

MEANINGS: dict[tuple[type[BaseModel], str], str] = {
    (Task, "runtime_profiles"): "Names of [profiles](profiles.md), all of which run. Left out: every profile whose language fits the submission, except those that are chosen [by name only](profiles.md#which-profiles-run).",
    (Expectation, "objective"): "What the task is for, in words. No part of the verdict, but for a `matches_objective` without one of its own.",
    (Expectation, "conditions"): "All of them must hold. At least one.",
    (Task, "trace"): "How traces are read for the task's tool conditions.",
    (TraceSettings, "trace_source"): "The source that the traces come from: registered in Python, or `grader receive --source`.",
    (Task, "judge"): "How a judge is asked, where the task has conditions for one.",
    (ProgramCase, "name"): "Names the case in reports, and for `-k`.",
    (ProgramCase, "arguments"): "Added to the profile's run command, byte for byte, through no shell.",
    (ProgramCase, "stdin"): "All that the program can read from standard input.",
    (ProgramCase, "environment"): "Variables by name, over those of the profile. Nothing else is inherited.",
    (ProgramCase, "files"): "Files that are in the work folder (the current one) before the program starts.",
    (ProgramCase, "stdout"): "What standard output must be. Left out: it is not checked.",
    (ProgramCase, "stderr"): "What standard error must be. Left out: it is not checked.",
    (ProgramCase, "exit_code"): "The exit codes that are allowed; `any` allows all.",
    (ProgramCase, "output_files"): "Files that must be in the work folder when the program has ended, and what each must be.",
    (InputFile, "name"): "Path inside the work folder.",
    (InputFile, "content"): "Its bytes.",
    (InputFile, "executable"): "Whether it may be executed.",
    (OutputFile, "name"): "Path inside the work folder.",
    (OutputFile, "expected"): "What it must be.",
    (ProgramBehaves, "cases"): "The cases; with `cases_from` also those of a folder. At least one in all.",
    (ProgramBehaves, "repetitions"): "How often each case runs under each profile, from 1 to 10,000.",
}  # fmt: skip
"""Sentences for fields that have none in the code, or one that speaks of Python."""

TYPES = {
    "str | None": "text",
    "str": "text",
    "bool": "`true` or `false`",
    "int": "whole number",
    "Bytes": "[bytes](#bytes)",
    "dict[str, Bytes]": "mapping of name to [bytes](#bytes)",
    "tuple[Bytes, ...]": "list of [bytes](#bytes)",
    "tuple[str, ...] | None": "list of names",
    "tuple[AnyCondition, ...]": "list of [conditions](#conditions)",
    "tuple[ProgramCase, ...]": "list of [cases](#a-case)",
    "AnyMatcher": "[matcher](matchers.md)",
    "AnyMatcher | None": "[matcher](matchers.md)",
    "Limits": "[limits](#limits)",
    "TraceSettings": "[trace settings](#trace-settings)",
    "JudgeSettings": "[judge settings](#judge-settings)",
    "Samples": "1 to 99",
    "VoteRule": "`majority` or `unanimous`",
    "TraceEvidenceRequirement": "`none`, `available` or `complete`",
    "Flag": "`true` or `false`",
    "Budget": "1,000 to 10,000,000",
    "Seconds | None": "seconds",
    "Size | None": "bytes: `1048576` or `64 MiB`",
    "Count | None": "whole number",
    "Annotated[int, BeforeValidator(parse_duration_ns)]": "duration: `5ms`",
}
_TYPE_OF: dict[tuple[type[BaseModel], str], str] = {
    (ProgramCase, "exit_code"): "0 to 255, a list of them, or `any`",
    (ProgramCase, "files"): "mapping of path to [bytes](#bytes)",
    (ProgramCase, "output_files"): "mapping of path to [matcher](matchers.md)",
    (ProgramBehaves, "repetitions"): "whole number",
}

_CONDITION_FIELDS = """Tool conditions and their fields: [tool conditions](tool-conditions.md). Conditions for a judge: [judging](judging.md). `all_of` and `any_of` have `conditions`, a list;
`not` has `condition`. Lists are never empty. Every repetition of a part is folded before parts are combined.
"""

_BYTES = """Wherever bytes are asked for, one of these may stand:

| written | means |
| --- | --- |
| `"text\\n"` | the text as UTF-8. Put it in quotes: what YAML takes for a number, a date or a truth value is refused |
| `{{base64: "/wA="}}` | any bytes |
| `{{file: data/1.in}}` | the bytes of a file in the task's folder |

In YAML `"\\xff"` is the character U+00FF, which is two bytes; `grader lint` warns of it. A `file` path is relative to the
folder of the task file and must not leave it, also not through a link. It must name a regular file of at most {file};
all files of a task together have at most {total}. Matchers that take `{{file: ...}}`: {matchers}.
"""

_CASES_FROM = """Written like one case, with patterns where a case has bytes. Each pattern has one `*`; what the star stands for pairs the
files and names the case. `stdout: data/*.ans` is short for `stdout: {equals: data/*.ans}`. What has no pattern is the
same for all these cases. A file without a partner is an error. An example: [write cases](../how-to/write-cases.md#cases-from-files).
"""


def page() -> str:
    """The page."""
    parts = [
        "# Task file\n",
        f"A task is a file `{FILE_NAME}`, in UTF-8, of at most {size(LARGEST_BYTES)}. A folder stands for the `{FILE_NAME}` in it. Keys that are not listed here, keys that stand "
        "twice, and keys without a value are errors, told with line and column; `grader lint` tells all of them.\n",
        "## The task\n",
        model_table(Expectation, Task),
        "## Conditions\n",
        "Each is a mapping with its `condition_type`.\n",
        table(["condition_type", "true when"], [[f"`{name}`", _true_when(name)] for name in condition_types()]),
        _CONDITION_FIELDS,
        "### program_behaves\n",
        f"{first_paragraph(ProgramBehaves)}\n",
        model_table(ProgramBehaves),
        "`cases_from`: see [below](#cases-from-a-folder).\n",
        "## A case\n",
        f"{first_paragraph(ProgramCase)} Any [ending](../explanation/verdicts.md#endings) but an exit makes the run false.\n",
        model_table(ProgramCase),
        "A file with a name that is not text, or that may be executed, is written as a list entry instead:\n",
        model_table(InputFile),
        "and an output file likewise:\n",
        model_table(OutputFile),
        "## Cases from a folder\n",
        _CASES_FROM,
        "## Bytes\n",
        _BYTES.format(
            file=size(LARGEST_FILE_BYTES),
            total=size(LARGEST_TOTAL_BYTES),
            matchers=", ".join(f"`{name}`" for name in sorted(FROM_FILE)),
        ),
        "## Matchers\n",
        "A mapping with exactly one of "
        + ", ".join(f"`{name}`" for name in matcher_names())
        + ", and that matcher's options: [matchers](matchers.md).\n",
        "## Limits\n",
        "A case's limits stand over the task's, and those over the profile's defaults. They may not be above the profile's "
        "[maximum](profiles.md#limits). All are greater than 0. Over the limit is exceeded; equal to it is fine.\n",
        table(["limit", "type", "meaning", "default"], _limits()),
        "The default holds where the profile says nothing either. `wall_time_s` is by default 3 × `cpu_time_s` + 2, at most "
        "the profile's maximum.\n",
        "## Trace settings\n",
        model_table(TraceSettings),
        "## Judge settings\n",
        model_table(JudgeSettings),
        "What each does: [judging](judging.md).\n",
    ]  # fmt: skip
    return "\n".join(parts)


def model_table(*models: type[BaseModel]) -> str:
    """The fields of models as a table."""
    rows = [[f"`{name}`", *rest] for model in models for name, *rest in _rows(model)]
    return table(["field", "type", "meaning", "default"], rows)


def _rows(model: type[BaseModel]) -> list[list[str]]:
    rows: list[list[str]] = []
    for field in fields_of(model).values():
        meaning = MEANINGS.get((model, field.name)) or field.meaning
        if not meaning:
            raise LookupError(f"nothing says what {model.__name__}.{field.name} means: write it below the field")
        rows.append(
            [
                written_name(model, field.name),
                type_of(model, field.name, field.annotation),
                meaning,
                _default(model, field.name),
            ]
        )
    return rows


def written_name(model: type[BaseModel], name: str) -> str:
    """How a field is written in the file."""
    alias = model.model_fields[name].validation_alias
    return alias if isinstance(alias, str) else name


def type_of(model: type[BaseModel], name: str, annotation: str) -> str:
    """A field's type in words. Raises LookupError for a type that this page has no words for."""
    known = _TYPE_OF.get((model, name)) or TYPES.get(annotation)
    if known is None:
        raise LookupError(f"no words for the type {annotation!r} of {model.__name__}.{name}: add them to TYPES")
    return known


def _default(model: type[BaseModel], name: str) -> str:
    if (model, name) == (ProgramBehaves, "cases"):
        return ""
    return "`0`" if name == "exit_code" else default_of(model.model_fields[name])


def _true_when(name: str) -> str:
    cls = condition_class(name)
    if cls is None:
        raise LookupError(name)
    said = first_paragraph(cls)
    return said[10].upper() + said[11:] if said.startswith("True when ") else said


def _limits() -> list[list[str]]:
    rows: list[list[str]] = []
    for field in fields_of(Limits).values():
        value: object = getattr(BUILT_IN_DEFAULTS, field.name)
        default = ""
        if value is not None:
            default = (
                f"{size(int(str(value)))}"
                if field.name.endswith("_bytes")
                else f"{value:g}"
                if isinstance(value, float)
                else f"{value}"
            )
        rows.append([f"`{field.name}`", type_of(Limits, field.name, field.annotation), field.meaning, default])
    return rows
