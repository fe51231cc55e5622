"""docs/reference/profiles.md: the format of a runtime profile, and the profiles that grader brings."""

from __future__ import annotations

from pydantic import BaseModel

from grader.capture.exported_spans import SpanLimits
from grader.core.limits import BUILT_IN_DEFAULTS, LimitRange, Limits
from grader.runtimes.folders import LoadedProfile, data_folder, load_profile
from grader.runtimes.profile import (
    BASE_ENVIRONMENT,
    COMPILED_NAME,
    SUBMISSION_FOLDER,
    TRACE_ENVIRONMENT,
    TRACE_PORT,
    WORK_FOLDER,
    CompileCommand,
    ProfileImage,
    ProfilePackages,
    RuntimeProfile,
    SelfTest,
)
from grader.sandbox.base import Port
from grader.scorers.runs import size
from scripts.generate_docs.source import default_of, fields_of, first_paragraph, table

_MEANINGS: dict[tuple[type[BaseModel], str], str] = {
    (RuntimeProfile, "description"): "A line for `grader runtimes list`.",
    (
        RuntimeProfile,
        "default",
    ): "`false`: only runs where a task or `-p` names it. See [which profiles run](#which-profiles-run).",
    (RuntimeProfile, "image"): "See [image](#image).",
    (RuntimeProfile, "packages"): "See [packages](#packages).",
    (RuntimeProfile, "compile"): "See [compile](#compile). Left out: nothing is compiled.",
    (RuntimeProfile, "limits"): "See [limits](#limits).",
    (RuntimeProfile, "environment"): "Variables by name, over those that every run gets.",
    (RuntimeProfile, "traces"): "See [traces](#traces).",
    (RuntimeProfile, "trusts_exporter"): "See [traces](#traces).",
    (RuntimeProfile, "self_tests"): "See [self tests](#self-tests).",
    (ProfilePackages, "debian"): "Names of Debian packages.",
    (ProfilePackages, "pypi"): "Names of PyPI packages; installed by pip into the image.",
    (CompileCommand, "argv"): "The command, through no shell. It mentions `{out}`.",
    (CompileCommand, "limits"): "Limits of the compile command; what is left out has the built-in default.",
    (LimitRange, "defaults"): "What holds where neither case nor task says anything.",
    (SelfTest, "name"): "Names it in the output.",
    (SelfTest, "stdin"): "Standard input.",
    (SelfTest, "limits"): "Limits of the case.",
    (SelfTest, "verdict"): "What it must get.",
}
_LINK = "[limits](task-file.md#limits)"
_TYPES = {
    "str": "text",
    "str | None": "text",
    "tuple[str, ...]": "list of text",
    "Annotated[tuple[str, ...], Field(min_length=1)]": "list of text, at least one",
    "Argv": "list of text, at least one",
    "Annotated[dict[str, str], Field(min_length=1)]": "mapping of path to text, at least one",
    "dict[str, str]": "mapping of name to text",
    "ProfileImage": "mapping",
    "ProfilePackages": "mapping",
    "CompileCommand | None": "mapping",
    "LimitRange": "mapping",
    "Limits": _LINK,
    "Annotated[int, Field(ge=1, le=64, strict=True)]": "1 to 64",
    "tuple[Literal['/tmp', '/work', '/dev/shm'], ...]": "list of `/tmp`, `/work`, `/dev/shm`",
    "Size": "bytes: `1048576` or `64 MiB`",
    "tuple[SelfTest, ...]": "list of mappings",
    "bool": "`true` or `false`",
    "Annotated[bool, Field(strict=True)]": "`true` or `false`",
    "Literal['otlp'] | None": "`otlp`",
    "ReasonCode | None": "[reason code](reasons.md) of a false verdict",
}


_NOTES = (
    "### What to know of each\n",
    "- `c`, `cpp`: all files with the suffixes are compiled together; headers are found beside them.",
    "- `go`: the program is the package in the top folder. Packages below it need a `go.mod`; nothing is downloaded.",
    "- `java`: the program starts in the class of the entry point that has a main method; if several have one, in the one "
    "that is called like the file. Packages are free. Files of the submission are resources on the class path.",
    "- `java`, `node`: the heap may grow to the limit of the case, so that a program that needs more ends with "
    "`memory.exceeded`; a single request that is larger than all memory is an error of the language's own.",
    "- `lua`, `perl`, `ruby`: `require` and `use` find files from the top folder of the submission.",
    "- `node`: `.mjs` is a module, `.cjs` is CommonJS, `.js` what its `package.json` says.",
    "- `php`: errors are written to standard error.",
    "- `pypy`: Python 3.9, chosen by name only.",
    "- `python-agent`: OpenTelemetry and pydantic-ai are in the image; programs have a [trace endpoint](#traces). Chosen by "
    "name only.",
    "- `rust`: one crate, from its root; further files are its modules. There are no other crates.\n",
    "Image and compiler are those of Debian 12. Memory is what is used, not address space: what a language reserves and "
    "never touches does not count.\n",
)
_WHICH = (
    "Those that the task or `-p` names. Where nothing is named, every profile whose language fits the submission, except "
    "those with `default: false`: they are chosen by name only, so that `pypy` does not run every Python program a second "
    "time.\n",
    "The language is the one that was given with the submission (from Python), else the one that the suffixes tell: a profile "
    "fits if it finds an entry point. If profiles of several languages do, a file that is called like one of the "
    "`entry_points` decides: `main.py` beside `setup.sh` is Python. If that does not decide either (`main.c` beside "
    "`main.py`), the submission is refused, because a program that is run in the wrong language would be called false.\n",
)


def page() -> str:
    """The page."""
    environment = ", ".join(f"`{name}={value}`" for name, value in BASE_ENVIRONMENT.items())
    parts = [
        "# Runtime profiles\n",
        "A profile is a file `NAME.yaml`; its name is the file's. It is trusted: a task or a submission chooses one by name, "
        "and can bring no image of its own and raise no limit. It is looked for in the folder of `--runtimes`, then in "
        "`~/.config/grader/runtimes`, then among those that come with grader; never in the current folder or the task's. "
        "How to write one: [own profile](../how-to/own-profile.md).\n",
        "## Shipped profiles\n",
        table(["profile", "what", "suffixes", "entry point of several files", "run"], [_shipped(one) for one in shipped()]),
        table(["profile", *(f"`{name}`" for name in _differing_limits())], _limits_of_each()),
        "Limits of all of them:\n",
        table(["limit", "all"], _common_limits()),
        "A pair is *default* / *maximum*. A single number is both: a case may lower it. `wall_time_s` follows from "
        "`cpu_time_s` where the default is missing.\n",
        *_NOTES,
        "## Which profiles run\n",
        *_WHICH,
        "## The file\n",
        _table(RuntimeProfile),
        f"Every run has the variables {environment}, then the profile's, then the case's, and no others. The submission is in "
        f"`{SUBMISSION_FOLDER}`, read-only; the current folder is `{WORK_FOLDER}`.\n",
        "The entry point is the only file with one of the suffixes; else the first of `entry_points` that is there.\n",
        "## Image\n",
        "Exactly one of:\n",
        _table(ProfileImage),
        "The folder `Dockerfiles` beside the folder `runtimes` of the profile is looked at first, then grader's own. The image "
        "is built with the build argument `BASE_IMAGE`, see [own profile](../how-to/own-profile.md).\n",
        "## Packages\n",
        f"{first_paragraph(ProfilePackages)}\n",
        _table(ProfilePackages),
        "## Compile\n",
        f"{first_paragraph(CompileCommand)} It runs in the work folder among the submission's files. In `argv`, `{{entry}}` is "
        "the entry point, `{sources}` (an argument by itself) all files with the profile's suffixes, and `{out}` the program "
        f"to make (`{COMPILED_NAME}`). A compile command that does not end with exit code 0 makes every case false, "
        "`compile.failed`.\n",
        _table(CompileCommand),
        "## Limits\n",
        _table(LimitRange),
        "## Traces\n",
        *_traces(),
        "## Self tests\n",
        f"{first_paragraph(SelfTest)} A profile with self tests has at least one that is true, one that is false, and one that "
        "exceeds its time.\n",
        _table(SelfTest),
    ]  # fmt: skip
    return "\n".join(parts)


def _traces() -> list[str]:
    """What `traces` and `trusts_exporter` mean, with the variables and bounds as they are."""
    variables = ", ".join(f"`{name}={value}`" for name, value in TRACE_ENVIRONMENT.items())
    limits, port = SpanLimits(), Port(TRACE_PORT)
    return [
        "`traces: otlp` gives every run an OTLP/HTTP endpoint on its own loopback; there is no other network. The program gets "
        f"{variables}, which the profile's and the case's variables can replace. The OpenTelemetry SDKs read them by "
        "themselves. What a run sends is part of its record, byte for byte, and what [tool conditions](tool-conditions.md) "
        "beside `program_behaves` judge; a task with such conditions is refused under a profile without `traces`.\n",
        "HTTP, gzip and OTLP (protobuf or JSON) are read outside the box. A request is answered with 200 when it is kept. Kept "
        f"are {size(limits.kept_bytes)} in {limits.spans:,} spans and {limits.requests:,} requests a run, each request up to "
        f"{size(limits.http.decompressed_bytes)} decompressed, on "
        f"{port.connections_in_all:,} connections ({port.connections_at_once} at once); after {limits.refused} requests that "
        "had to be refused nothing more is taken. Whatever is lost that way is a reason why the evidence is not complete. It "
        "needs `pip install 'grader[receive]'`.\n",
        "Spans are the program's own word: what they show stands, what they do not show proves nothing "
        "(`evidence.self_reported`). With `trusts_exporter: true` an absence counts too, if the program ended by itself, "
        "left no process behind, everything that it sent was kept, and no check of the trace finds anything missing. Whom "
        "to trust: [what self-reported evidence can settle](../explanation/self-reported.md).\n",
    ]


def shipped() -> list[LoadedProfile]:
    """The profiles that come with grader, by name."""
    return [load_profile(file) for file in sorted(data_folder("runtimes").glob("*.yaml"))]


def _table(model: type[BaseModel]) -> str:
    rows: list[list[str]] = []
    for field in fields_of(model).values():
        meaning = _MEANINGS.get((model, field.name)) or field.meaning
        if not meaning:
            raise LookupError(f"nothing says what {model.__name__}.{field.name} means: write it below the field")
        if field.annotation not in _TYPES:
            raise LookupError(f"no words for the type {field.annotation!r} of {model.__name__}.{field.name}")
        kind = _LINK if model is LimitRange else _TYPES[field.annotation]
        info = model.model_fields[field.name]
        default = size(info.default) if field.name.endswith("_bytes") else default_of(info)
        rows.append([f"`{field.name}`", kind, meaning, default])
    return table(["field", "type", "meaning", "default"], rows)


def _shipped(one: LoadedProfile) -> list[str]:
    profile = one.profile
    entries = " ".join(f"`{name}`" for name in profile.entry_points)
    commands = [profile.compile.argv, profile.run] if profile.compile is not None else [profile.run]
    shown = ", then ".join(f"`{' '.join(argv)}`" for argv in commands)
    return [
        f"`{one.name}`",
        profile.description,
        " ".join(f"`{suffix}`" for suffix in profile.suffixes),
        entries,
        shown,
    ]


def _cells(name: str) -> list[str]:
    """What each shipped profile says of a limit."""
    return [_pair(one.profile.limits, name) for one in shipped()]


def _differing_limits() -> list[str]:
    return [name for name in Limits.model_fields if len(set(_cells(name))) > 1]


def _limits_of_each() -> list[list[str]]:
    columns = [_cells(name) for name in _differing_limits()]
    return [[f"`{one.name}`", *cells] for one, *cells in zip(shipped(), *columns, strict=True)]


def _common_limits() -> list[list[str]]:
    cells = {name: set(_cells(name)) for name in Limits.model_fields}
    return [[f"`{name}`", *same] for name, same in cells.items() if len(same) == 1 and same != {""}]


def _pair(limits: LimitRange, name: str) -> str:
    default: float | None = getattr(limits.defaults.over(BUILT_IN_DEFAULTS), name)
    most: float | None = getattr(limits.maximum, name)
    shown = [_number(name, value) for value in (default, most) if value is not None]
    return " / ".join(dict.fromkeys(shown)) if default is not None else f"- / {shown[0]}" if shown else ""


def _number(name: str, value: float) -> str:
    return size(int(value)) if name.endswith("_bytes") else f"{value:g}"
