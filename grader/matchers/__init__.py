"""The matchers: each compares one value with what is expected of it. Importing this package registers all of them.

One file a family: `text` (equals, contains, digest), `lines`, `tokens`, `regex`, `json_value`, `combined` (all_of,
any_of, not). A new matcher is a new file like these, imported here, with its table of examples in the tests.
"""

from __future__ import annotations

from grader.matchers.combined import MatchesAll, MatchesAny, MatchesNot
from grader.matchers.json_value import JsonEquals
from grader.matchers.lines import Lines
from grader.matchers.regex import Regex
from grader.matchers.text import Contains, Digest, Equals
from grader.matchers.tokens import Tokens

__all__ = [
    "Contains",
    "Digest",
    "Equals",
    "JsonEquals",
    "Lines",
    "MatchesAll",
    "MatchesAny",
    "MatchesNot",
    "Regex",
    "Tokens",
]
