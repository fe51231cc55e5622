"""What Logfire scrubs of a span before its export: by default every value in which a word such as "password" stands.

Source: logfire `scrubbing.py`: the value is replaced by a note, and `logfire.scrubbed` lists the paths of what was
replaced, such as `["attributes", "gen_ai.tool.call.arguments", "body"]`. The note is not what the tool got.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from grader.core.tools.arguments import REMOVED, ContentRules
from grader.traces.arguments import json_of
from grader.traces.span import Span

SCRUBBED = "logfire.scrubbed"


def rules_beside_scrubbing(span: Span, rules: ContentRules) -> ContentRules:
    """The rules for a span's content: arguments in which something was scrubbed count as redacted."""
    if SCRUBBED not in span.attributes:
        return rules
    names, earlier = _names(json_of(span.attributes.get(SCRUBBED))), rules.redactor

    def redactor(name: str, value: object) -> object:
        if names is None or name in names:
            return REMOVED
        return value if earlier is None else earlier(name, value)

    return replace(rules, redactor=redactor)


def _names(found: object) -> frozenset[str] | None:
    """Every name on the paths inside attributes; None, all names, for what cannot be read."""
    if not isinstance(found, list):
        return None
    names: set[str] = set()
    for item in cast("list[object]", found):
        path = cast("dict[str, object]", item).get("path") if isinstance(item, dict) else None
        if not isinstance(path, list):
            return None
        names.update(part for part in cast("list[object]", path)[2:] if isinstance(part, str))
    return frozenset(names)
