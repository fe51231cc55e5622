"""From what producers write to the arguments of a call: JSON, JSON in JSON, envelopes, Python literals.

Each step is tried in this order: an object as it is; a JSON text (at most twice); a Python literal (marked `lenient`);
then a known envelope is taken off. What is left is unparsable, which never matches and never misses.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Mapping
from decimal import Decimal
from typing import cast

from grader.core.tools.arguments import (
    CONFLICTING,
    NOT_RECORDED,
    REDACTED,
    REMOVED,
    ArgumentState,
    ContentRules,
    ToolArguments,
    compact_json,
    parse_json,
    recorded_arguments,
    unparsable_arguments,
)
from grader.traces.span import Unreadable

NOTHING = frozenset({"<not specified>", "N/A", "<not serializable>"})
"""What producers write in place of arguments or ids they do not have."""
_MAX_LITERAL = 64 * 1024
_MAX_JSON_TEXT = 16 << 20
_LANGCHAIN_ENVELOPE = frozenset({"input_str", "tags", "metadata", "inputs", "kwargs"})
_CALL_ENVELOPE = frozenset({"args", "kwargs", "sanitize_inputs_outputs"})


def arguments_from(value: object, rules: ContentRules) -> ToolArguments:
    """Arguments from the value of an attribute; None means that it is not there."""
    if value is None or (isinstance(value, str) and (value in NOTHING or value == "")):
        return NOT_RECORDED
    if value is Unreadable.CONFLICTING:
        return CONFLICTING
    if isinstance(value, Unreadable):
        return ToolArguments(state=ArgumentState.UNPARSABLE, detail="nested too deeply, or malformed")
    if value == REMOVED:
        return REDACTED
    found, lenient, detail = _decoded(value)
    if isinstance(found, dict):
        return _unwrapped(cast("dict[str, object]", found), rules, lenient)
    return unparsable_arguments(value if isinstance(value, str) else str(value), rules, detail=detail)


def json_of(value: object) -> object:
    """The value of a JSON text; a value that is no text as it is; None for a text that is no JSON or is too long."""
    if not isinstance(value, str):
        return None if isinstance(value, Unreadable) else value
    if len(value) > _MAX_JSON_TEXT:
        return None
    try:
        return parse_json(value)
    except ValueError:
        return None


def _decoded(value: object) -> tuple[object, bool, str]:
    """(value, whether read as a Python literal, what is wrong when it is no object)."""
    detail = "not an object"
    for _ in range(2):
        if not isinstance(value, str):
            break
        try:
            value = parse_json(value)
        except json.JSONDecodeError as error:
            literal = _literal(value)
            return literal, literal is not None, f"no JSON: {error}"[:200]
        except ValueError as error:
            # JSON, but with a doubled key or beyond the limits: a second reading would only guess.
            return None, False, str(error)[:200]
    return value, False, detail


def _literal(text: str) -> object:
    if not text.lstrip().startswith("{") or len(text) > _MAX_LITERAL:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval")
            value: object = ast.literal_eval(tree)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
    keys = [[ast.dump(key) for key in node.keys if key] for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    has_doubled_key = any(len(set(found)) != len(found) for found in keys)
    return cast("object", value) if isinstance(value, dict) and not has_doubled_key else None


def _unwrapped(value: dict[str, object], rules: ContentRules, lenient: bool) -> ToolArguments:
    """The arguments inside a known envelope, or the object itself."""
    keys = value.keys()
    if "input_str" in keys and keys <= _LANGCHAIN_ENVELOPE:
        inner = value.get("inputs")
        if isinstance(inner, dict):
            return recorded_arguments(cast("object", inner), rules, lenient=lenient)
        return unparsable_arguments(str(value.get("input_str")), rules, detail="the input is text, not named arguments")
    if _is_python_call(value):
        return _of_python_call(value, (), rules, lenient)
    return recorded_arguments(value, rules, lenient=lenient)


def bound_arguments(value: object, schema: object, rules: ContentRules) -> ToolArguments:
    """Arguments of a Python call: `{"args": [...], "kwargs": {...}}`, or by name.

    Of arguments by position the name is known only when the tool has one parameter: `schema` describes them, as JSON
    Schema or name by name.
    """
    found, lenient, _ = _decoded(value)
    if isinstance(found, dict) and _is_python_call(call := cast("dict[str, object]", found), may_lack_one=True):
        return _of_python_call(call, _parameter_names(schema), rules, lenient)
    return arguments_from(value, rules)


def _is_python_call(value: dict[str, object], *, may_lack_one: bool = False) -> bool:
    keys = value.keys()
    if not keys <= _CALL_ENVELOPE or not {"args", "kwargs"} & keys:
        return False
    is_whole = "sanitize_inputs_outputs" in keys or {"args", "kwargs"} <= keys or may_lack_one
    return is_whole and isinstance(value.get("args", []), list) and isinstance(value.get("kwargs", {}), dict)


def _of_python_call(
    call: dict[str, object], names: tuple[str, ...], rules: ContentRules, lenient: bool
) -> ToolArguments:
    positional, named = cast("list[object]", call.get("args", [])), call.get("kwargs", {})
    if not positional:
        return recorded_arguments(named, rules, lenient=lenient)
    if len(positional) == len(names) == 1 and named == {}:
        return recorded_arguments({names[0]: positional[0]}, rules, lenient=lenient)
    return unparsable_arguments(str(positional), rules, detail="arguments by position, without their names")


def with_proposal(found: ToolArguments, proposed: str | None, rules: ContentRules) -> ToolArguments:
    """Arguments of which a producer left out the name of the only one, completed from what the model asked for.

    Only if the model asked for one argument, and its value is what was found; else what was found stays.
    """
    asked = json_of(proposed)
    if not isinstance(asked, dict) or len(cast("dict[str, object]", asked)) != 1 or found.text is None:
        return found
    given = cast("dict[str, object]", asked)
    value = next(iter(given.values()))
    texts = {value if isinstance(value, str) else compact_json(value)}
    inner = json_of(value)
    if isinstance(inner, dict):
        texts.add(compact_json(cast("object", inner)))
    return recorded_arguments(given, rules) if found.text in texts else found


def _parameter_names(schema: object) -> tuple[str, ...]:
    found = json_of(schema)
    if not isinstance(found, dict) or not looks_like_schema(cast("object", found)):
        return ()
    entries = cast("dict[str, object]", found)
    properties = entries.get("properties", entries)
    return tuple(cast("dict[str, object]", properties)) if isinstance(properties, dict) else ()


def looks_like_schema(value: object) -> bool:
    """Whether an object describes parameters instead of giving them: `tool.parameters` is used for both."""
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return False
    if not isinstance(value, dict):
        return False
    entries = cast("Mapping[str, object]", value)
    if "type" in entries and "properties" in entries:
        return True
    return len(entries) > 0 and all(isinstance(item, dict) and "type" in item for item in entries.values())


_SCALARS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, Decimal),
    "boolean": (bool,),
}


def fit(arguments: object, schema: object) -> bool | None:
    """Whether arguments fit a JSON Schema of an object, as a framework checks it; None when that is not sure.

    Sure are only plain parameters: one that is needed and missing, one of another type where a text is wanted.
    """
    given, wanted = json_of(arguments), json_of(schema)
    properties = cast("dict[str, object]", wanted).get("properties") if isinstance(wanted, dict) else None
    if not isinstance(given, dict) or not isinstance(properties, dict):
        return None
    required = cast("dict[str, object]", wanted).get("required")
    listed = cast("list[object]", required) if isinstance(required, list) else []
    needed = frozenset(name for name in listed if isinstance(name, str))
    values = cast("dict[str, object]", given)
    found = [
        _fits(values, name, kind, is_needed=name in needed)
        for name, kind in cast("dict[str, object]", properties).items()
    ]
    return False if False in found else (None if None in found else True)


def _fits(values: Mapping[str, object], name: str, kind: object, *, is_needed: bool) -> bool | None:
    described = cast("dict[str, object]", kind) if isinstance(kind, dict) else {}
    types = _SCALARS.get(str(described.get("type")))
    if name not in values:
        return True if not is_needed else (False if types is not None and "default" not in described else None)
    value = values[name]
    if types is None or "enum" in described:
        return None
    if isinstance(value, types) and isinstance(value, bool) is (types == (bool,)):
        return True
    # Where a number is wanted a framework may take a text that has one; a text is never made of something else.
    return False if types == (str,) else None
