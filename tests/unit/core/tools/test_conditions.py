"""Tool conditions as values: plain form and back, fingerprints, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import grader.matchers as _matchers
from grader.core.conditions import Condition, condition_types, parse_condition
from grader.core.tools.conditions import (
    ToolArgumentRequirement,
    ToolCallRequirement,
    ToolPrecededBy,
    ToolsCalled,
    ToolsCalledInOrder,
    ToolsNotCalled,
)

EQUALS_X = {"name": "to", "matcher": {"equals": "x"}}

FORMS: list[tuple[dict[str, object], Condition, str]] = [
    (
        {"condition_type": "tools_called", "tools": [{"name": "send_email"}]},
        ToolsCalled(tools=(ToolCallRequirement(name="send_email"),)),
        "452e1bf3b0a3252b44b00cf1dd9112b68ec86fa5019c7ce5a4efea75859c2846",
    ),
    (
        {"condition_type": "tools_called", "tools": [{"name": "send_email", "arguments": [EQUALS_X]}]},
        ToolsCalled(
            tools=(
                ToolCallRequirement(
                    name="send_email",
                    arguments=(ToolArgumentRequirement(name="to", matcher=_matchers.Equals(expected=b"x")),),
                ),
            )
        ),
        "915b27872f4b391057a90d365f49ff07a5fb048ca61979568adb22e9bff1a552",
    ),
    (
        {
            "condition_type": "tools_called",
            "tools": [{"name": "send", "at_least": 2, "at_most": 3}, {"name": "log", "at_least": 0}],
            "exhaustive": True,
            "case": "greeting",
        },
        ToolsCalled(
            case="greeting",
            tools=(
                ToolCallRequirement(name="send", at_least=2, at_most=3),
                ToolCallRequirement(name="log", at_least=0),
            ),
            exhaustive=True,
        ),
        "7ef219f46eee728155b5fc8ebfa247d24ea9857286132cec5670c71902046623",
    ),
    (
        {"condition_type": "tools_called", "exhaustive": True},
        ToolsCalled(exhaustive=True),
        "9251b1d3c7a34c09da1ae323975d582595f003309d1dde176798fc10aa5bcc18",
    ),
    (
        {"condition_type": "tools_called_in_order", "tools": [{"name": "confirm"}, {"name": "send"}]},
        ToolsCalledInOrder(tools=(ToolCallRequirement(name="confirm"), ToolCallRequirement(name="send"))),
        "f6177f0ca3348182f3dd99759da347c1b04fa25a8016ef6069de3bca517dbe6f",
    ),
    (
        {"condition_type": "tools_called_in_order", "tools": [{"name": "a"}, {"name": "b"}, {"name": "a"}]},
        ToolsCalledInOrder(tools=tuple(ToolCallRequirement(name=name) for name in "aba")),
        "2dbb84daac15207a635e3531801912c040a284d45c96cf8085b8d0a3948bf703",
    ),
    (
        {"condition_type": "tools_not_called", "tools": ["delete_*", "pay"]},
        ToolsNotCalled(tools=("delete_*", "pay")),
        "c8b1b27fc3527b3cd49bea5df44a01b0224ceb08b7f4df5c66317194aa88f091",
    ),
    (
        {"condition_type": "tool_preceded_by", "tool": "send", "by": "confirm"},
        ToolPrecededBy(tool="send", by="confirm"),
        "53db7e17e114266dc93b74414af6ca2a41440567ece39ab2f12070ef369d61fc",
    ),
]


@pytest.mark.parametrize(("plain", "condition", "fingerprint"), FORMS)
def test_plain_form_and_fingerprint(plain: Mapping[str, object], condition: Condition, fingerprint: str) -> None:
    assert parse_condition(plain) == condition
    assert condition.to_plain() == plain
    assert condition.fingerprint == fingerprint


def test_defaults_that_are_written_out_do_not_change_the_fingerprint() -> None:
    written: dict[str, object] = {
        "condition_type": "tools_called",
        "tools": [{"name": "send_email", "arguments": [], "at_least": 1, "at_most": None}],
        "exhaustive": False,
        "case": None,
    }
    assert parse_condition(written).fingerprint == FORMS[0][2]


def test_conditions_are_registered() -> None:
    names = {"tools_called", "tools_called_in_order", "tools_not_called", "tool_preceded_by"}
    assert names <= set(condition_types())


REFUSED: list[tuple[dict[str, object], str]] = [
    ({"condition_type": "tools_called"}, "no tools"),
    ({"condition_type": "tools_called", "tools": []}, "no tools"),
    ({"condition_type": "tools_called", "tools": [{"name": "a", "at_least": 0}]}, "constrains nothing"),
    ({"condition_type": "tools_called", "tools": [{"name": ""}]}, "must not be empty"),
    ({"condition_type": "tools_called", "tools": [{"name": 3}]}, "expected text"),
    ({"condition_type": "tools_called", "tools": ["a"]}, "valid dictionary"),
    ({"condition_type": "tools_called", "tools": [{"name": "a", "count": 2}]}, "Extra inputs"),
    ({"condition_type": "tools_called", "tools": [{"name": "a"}], "only": True}, "Extra inputs"),
    ({"condition_type": "tools_called", "tools": [{"name": "a"}], "exhaustive": "yes"}, "valid boolean"),
    ({"condition_type": "tools_called", "tools": [{"name": "a"}], "case": ""}, "must not be empty"),
    ({"condition_type": "tools_called", "tools": [{"name": "a"}, {"name": "a"}]}, "a stands here twice"),
    (
        {
            "condition_type": "tools_called",
            "tools": [{"name": "a", "arguments": [EQUALS_X]}, {"name": "a", "arguments": [EQUALS_X], "at_least": 2}],
        },
        r"a\(to\) stands here twice",
    ),
    ({"condition_type": "tools_called", "tools": [{"name": "a", "at_least": -1}]}, "greater than or equal to 0"),
    ({"condition_type": "tools_called", "tools": [{"name": "a", "at_least": True}]}, "whole number"),
    ({"condition_type": "tools_called", "tools": [{"name": "a", "at_least": 1.0}]}, "whole number"),
    ({"condition_type": "tools_called", "tools": [{"name": "a", "at_most": 0}]}, "less than at_least 1"),
    ({"condition_type": "tools_called", "tools": [{"name": "a", "at_least": 3, "at_most": 2}]}, "less than at_least 3"),
    (
        {
            "condition_type": "tools_called",
            "exhaustive": True,
            "tools": [{"name": "a", "at_least": 0, "arguments": [EQUALS_X]}],
        },
        "arguments constrain nothing",
    ),
    (
        {"condition_type": "tools_called", "tools": [{"name": "a", "arguments": [{"name": "", "matcher": {}}]}]},
        "must not be empty",
    ),
    (
        {
            "condition_type": "tools_called",
            "tools": [{"name": "a", "arguments": [{"name": "to", "matcher": {"is": "x"}}]}],
        },
        "expected exactly one matcher",
    ),
    ({"condition_type": "tools_called", "tools": [{"name": "a", "arguments": [{"name": "to"}]}]}, "Field required"),
    ({"condition_type": "tools_called_in_order", "tools": [{"name": "a"}]}, "at least 2 items"),
    (
        {"condition_type": "tools_called_in_order", "tools": [{"name": "a", "at_least": 2}, {"name": "b"}]},
        "a step is one call",
    ),
    (
        {"condition_type": "tools_called_in_order", "tools": [{"name": "a"}, {"name": "b", "at_most": 1}]},
        "a step is one call",
    ),
    ({"condition_type": "tools_not_called"}, "Field required"),
    ({"condition_type": "tools_not_called", "tools": []}, "at least 1 item"),
    ({"condition_type": "tools_not_called", "tools": [""]}, "must not be empty"),
    ({"condition_type": "tools_not_called", "tools": ["a", "a"]}, "named twice"),
    ({"condition_type": "tool_preceded_by", "tool": "a", "by": "a"}, "name another tool"),
    ({"condition_type": "tool_preceded_by", "tool": "a"}, "Field required"),
    ({"condition_type": "tool_preceded_by", "tool": "", "by": "a"}, "must not be empty"),
    ({"condition_type": "tools_call", "tools": []}, "unknown condition_type"),
]


@pytest.mark.parametrize(("plain", "message"), REFUSED)
def test_refused(plain: Mapping[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_condition(plain)


def test_arguments_in_another_order_are_the_same_requirement() -> None:
    other = {"name": "body", "matcher": {"contains": "y"}}
    tools = [{"name": "a", "arguments": [EQUALS_X, other]}, {"name": "a", "arguments": [other, EQUALS_X]}]
    with pytest.raises(ValueError, match="stands here twice"):
        parse_condition({"condition_type": "tools_called", "tools": tools})


def test_requirements_that_differ_in_an_argument_may_share_a_name() -> None:
    other = {"name": "to", "matcher": {"equals": "y"}}
    tools = [{"name": "a", "arguments": [EQUALS_X]}, {"name": "a", "arguments": [other]}, {"name": "a"}]
    assert isinstance(parse_condition({"condition_type": "tools_called", "tools": tools}), ToolsCalled)


def test_a_forbidden_call_with_arguments_is_written_with_both_counts() -> None:
    plain = {
        "condition_type": "tools_called",
        "tools": [{"name": "a", "arguments": [EQUALS_X], "at_least": 0, "at_most": 0}],
    }
    assert parse_condition(plain).to_plain() == plain
