"""Reads one case of `program_behaves` from YAML values: files, matchers, limits; all mistakes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from grader.core.cases import ProgramCase
from grader.core.limits import Limits
from grader.core.matching import Matcher, matcher_class, matcher_names, parse_matcher
from grader.errors import Problem
from grader.formats.mistakes import described, unknown_key, validation_problems
from grader.formats.task_folder import TaskFolder
from grader.yaml_source import YamlDocument, YamlPath

M = TypeVar("M", bound=BaseModel)

FROM_FILE = frozenset({"equals", "contains", "lines", "tokens", "json"})
"""Matchers whose expected value may be `{file: path}`."""

_COMPOSITES = frozenset({"all_of", "any_of", "not"})


@dataclass
class Reading:
    """A task file that is being read: the document, the folder beside it, and the problems found so far."""

    document: YamlDocument
    folder: TaskFolder
    problems: list[Problem] = field(default_factory=list[Problem])

    def refuse(self, path: YamlPath, message: str, hint: str | None = None) -> None:
        """Note a problem of the value at `path`."""
        self.problems.append(Problem(message, self.document.place(path), hint))

    def mapping(
        self, value: object, path: YamlPath, what: str, may_be_null: frozenset[str] = frozenset()
    ) -> dict[str, Any] | None:
        """`value` if it is a mapping; None after noting that it is not. A key without a value is a problem too."""
        if not isinstance(value, dict):
            self.refuse(path, f"{what} is a mapping, not {described(value)}")
            return None
        entries = cast("dict[str, Any]", value)
        empty = [key for key, item in entries.items() if item is None and key not in may_be_null]
        for key in empty:
            hint = 'leave the key out, or write "" for empty text'
            self.problems.append(Problem(f"{key!r} has no value", self.document.key_place((*path, key)), hint))
        return {key: item for key, item in entries.items() if key not in empty}

    def build(self, model: type[M], entries: Mapping[str, object], path: YamlPath) -> M | None:
        """A model from its entries; None after noting the problems."""
        try:
            return model.model_validate(entries)
        except ValidationError as error:
            aliases = (f.validation_alias for f in model.model_fields.values())
            known = frozenset(model.model_fields) | {alias for alias in aliases if isinstance(alias, str)}
            self.problems.extend(validation_problems(error, self.document, path, known))
            return None

    def content(self, value: object, path: YamlPath) -> object:
        """The bytes of the file if `value` is `{file: path}`, else `value` as it is; None after noting a problem."""
        if not is_file_reference(value):
            return value
        name = cast("dict[str, object]", value)["file"]
        if not isinstance(name, str):
            self.refuse((*path, "file"), f"a file name is text, not {described(name)}", "put it in quotes")
            return None
        try:
            return self.folder.read(name)
        except ValueError as error:
            self.refuse((*path, "file"), str(error))
            return None


def is_file_reference(value: object) -> bool:
    """Whether a value is written `{file: ...}`."""
    return isinstance(value, dict) and set(cast("dict[object, object]", value)) == {"file"}


def read_case(reading: Reading, value: object, path: YamlPath) -> ProgramCase | None:
    """A case; None after noting its problems."""
    entries = reading.mapping(value, path, "a case")
    if entries is None:
        return None
    before = len(reading.problems)
    data = {key: _part(reading, key, item, (*path, key)) for key, item in entries.items()}
    case = reading.build(ProgramCase, {key: item for key, item in data.items() if item is not None}, path)
    return case if len(reading.problems) == before else None


def read_matcher(reading: Reading, value: object, path: YamlPath) -> Matcher | None:
    """A matcher with the file that it names; None after noting its problems."""
    if isinstance(value, Matcher):
        return value
    if isinstance(value, str):
        reading.refuse(path, "expected a matcher, not plain text", "write {equals: ...} around it")
        return None
    before = len(reading.problems)
    entries = reading.mapping(value, path, "a matcher", may_be_null=frozenset({"json"}))
    if entries is None:
        return None
    named = [key for key in entries if key in matcher_names()]
    cls = matcher_class(named[0]) if len(named) == 1 else None
    if cls is None:
        _refuse_matchers(reading, entries, named, path)
        return None
    name = cls.matcher_name
    argument = _argument(reading, name, entries[name], (*path, name))
    if len(reading.problems) > before:
        return None
    options = frozenset(cls.model_fields) - {cls.matcher_argument}
    unknown = [key for key in entries if key != name and key not in options]
    reading.problems.extend(unknown_key(reading.document, (*path, key), options) for key in unknown)
    known = {key: item for key, item in entries.items() if key not in unknown}
    try:
        matcher = parse_matcher({**known, name: argument})
    except ValidationError as error:
        renamed = {cls.matcher_argument: name}
        reading.problems.extend(validation_problems(error, reading.document, path, renamed=renamed))
        return None
    except ValueError as error:
        reading.refuse(path, str(error))
        return None
    return matcher if not unknown else None


def _part(reading: Reading, key: str, value: object, path: YamlPath) -> object:
    """The value of a case's key with everything resolved that its model does not know of; None if it is wrong."""
    readers: dict[str, Callable[[Reading, object, YamlPath], object]] = {
        "stdin": Reading.content,
        "arguments": _contents,
        "environment": _contents,
        "files": _files,
        "stdout": read_matcher,
        "stderr": read_matcher,
        "output_files": _output_files,
        "limits": read_limits,
    }
    reader = readers.get(key)
    return value if reader is None else reader(reading, value, path)


def read_limits(reading: Reading, value: object, path: YamlPath) -> Limits | None:
    """Limits; None after noting their problems."""
    entries = reading.mapping(value, path, "limits")
    return None if entries is None else reading.build(Limits, entries, path)


def _contents(reading: Reading, value: object, path: YamlPath) -> object:
    """A list or mapping of bytes, each of which may be `{file: ...}`."""
    if isinstance(value, list):
        items = cast("list[object]", value)
        for index, item in enumerate(items):
            if item is None:
                reading.refuse((*path, index), "expected text, not nothing", 'write "" for empty text')
        return [_or_empty(reading.content(item, (*path, index))) for index, item in enumerate(items)]
    if isinstance(value, dict):
        entries = reading.mapping(cast("object", value), path, "it")
        if entries is not None:
            return {key: _or_empty(reading.content(item, (*path, key))) for key, item in entries.items()}
        return None
    return value


def _or_empty(content: object) -> object:
    """Stands for content whose problem is noted already, so that its neighbours are looked at too."""
    return b"" if content is None else content


def _files(reading: Reading, value: object, path: YamlPath) -> object:
    """`{name: content}`, or a list of `{name, content, executable}` for names that are not text."""
    if not isinstance(value, list):
        return _contents(reading, value, path)
    return [
        {key: reading.content(part, (*path, index, key)) if key == "content" else part for key, part in entries}
        for index, entries in _entries_of(reading, cast("list[object]", value), path)
    ]


def _output_files(reading: Reading, value: object, path: YamlPath) -> object:
    """`{name: matcher}`, or a list of `{name, expected}` for names that are not text."""
    if isinstance(value, list):
        return [
            {
                key: read_matcher(reading, part, (*path, index, key)) if key == "expected" else part
                for key, part in entries
            }
            for index, entries in _entries_of(reading, cast("list[object]", value), path)
        ]
    entries = reading.mapping(value, path, "output_files")
    if entries is None:
        return None
    return _without_none({name: read_matcher(reading, item, (*path, name)) for name, item in entries.items()})


def _entries_of(
    reading: Reading, items: list[object], path: YamlPath
) -> Iterator[tuple[int, list[tuple[str, object]]]]:
    for index, item in enumerate(items):
        entries = reading.mapping(item, (*path, index), "a file")
        if entries is not None:
            yield index, list(entries.items())


def _argument(reading: Reading, name: str, value: object, path: YamlPath) -> object:
    """The argument of a matcher: parts of a composite are read one by one, files are read."""
    if name == "not":
        return read_matcher(reading, value, path)
    if name in _COMPOSITES:
        if not isinstance(value, list):
            reading.refuse(path, f"{name} is a list of matchers, not {described(value)}")
            return None
        parts = [read_matcher(reading, item, (*path, index)) for index, item in enumerate(cast("list[object]", value))]
        return None if None in parts else parts
    if name in FROM_FILE:
        return reading.content(value, path)
    if is_file_reference(value):
        reading.refuse(path, f"{name} cannot be read from a file", f"possible for {', '.join(sorted(FROM_FILE))}")
        return None
    return value


def _refuse_matchers(reading: Reading, entries: Mapping[str, object], named: list[str], path: YamlPath) -> None:
    if named:
        reading.refuse(path, f"expected one matcher, found {', '.join(named)}", "join them with all_of or any_of")
    elif entries:
        for key in entries:
            reading.problems.append(unknown_key(reading.document, (*path, key), matcher_names()))
    else:
        reading.refuse(path, "expected a matcher, not an empty mapping", f"one of {', '.join(matcher_names())}")


def _without_none(entries: Mapping[str, object]) -> dict[str, object] | None:
    return None if None in entries.values() else dict(entries)
