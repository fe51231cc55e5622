"""The values of tool evidence: immutable, written and read back unchanged, arguments bounded and exact."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from grader.core.observation import Acquisition, Observation
from grader.core.reasons import ReasonCode
from grader.core.tools.arguments import (
    CONFLICTING,
    NOT_RECORDED,
    REDACTED,
    ArgumentState,
    ContentRules,
    ToolArguments,
    combined,
    compact_json,
    parse_json,
    recorded_arguments,
    unparsable_arguments,
)
from grader.core.tools.calls import Attempt, EvidenceSource, OrderEdge, ToolCall, ToolsPayload
from grader.core.traces.coverage import Coverage, CoverageCode, CoverageReason, merge_reasons

RULES = ContentRules()
TRACE_SOURCE = (EvidenceSource.TRACE,)


def call(key: str, **more: object) -> ToolCall:
    return ToolCall.model_validate({"key": key, "names": ("t",), "sources": TRACE_SOURCE, **more})


def test_an_observation_of_tools_is_written_and_read_back_unchanged() -> None:
    arguments = recorded_arguments({"a": Decimal("1.50"), "b": [None, True, "ä\ud800"]}, RULES)
    payload = ToolsPayload(
        calls=(
            call("a", arguments=arguments, attempts=(Attempt(start_ns=2**62, end_ns=2**63),)),
            call("b", maybe_same_as="a"),
        ),
        order_edges=(OrderEdge(before="a", after="b"),),
        coverage=Coverage(declared_by="x", reasons=(CoverageReason(code=CoverageCode.FILE_CUT),)),
    )
    observation = Observation(acquisition=Acquisition.PARTIAL, payload=payload)
    again = Observation.model_validate_json(observation.model_dump_json())
    assert again == observation
    assert again.digest == observation.digest
    assert isinstance(again.payload, ToolsPayload)
    assert again.payload.calls[0].attempts[0].end_ns == 2**63


@pytest.mark.parametrize(
    "payload",
    [
        {"calls": (call("a"), call("a"))},
        {"calls": (call("a", maybe_same_as="b"),)},
        {"order_edges": (OrderEdge(before="a", after="b"),)},
        {"only_in_messages": ("a",)},
        {"unknown": 1},
        {"schema_version": 2},
    ],
)
def test_payloads_that_contradict_themselves_are_refused(payload: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ToolsPayload.model_validate(payload)


def test_values_are_frozen_and_names_are_needed() -> None:
    with pytest.raises(ValidationError):
        call("a").key = "b"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        ToolCall(key="a", names=(), sources=TRACE_SOURCE)
    with pytest.raises(ValidationError):
        Attempt(start_ns=2, end_ns=1)


def test_what_cuts_an_argument_says_so_for_it_alone() -> None:
    rules = ContentRules(max_argument_bytes=40)
    found = recorded_arguments({"to": "x", "body": "y" * 100}, rules)
    assert found.is_recorded
    assert found.argument("to").value == "x"
    body = found.argument("body")
    assert (body.state, str(body.why)) == (ArgumentState.NOT_RECORDED, "truncated")
    assert found.argument("other").is_absent
    assert found.not_kept[0].total_bytes == 102
    assert found.sha256 == recorded_arguments({"body": "y" * 100, "to": "x"}, RULES).sha256
    whole = recorded_arguments({f"k{n}": 1 for n in range(50)}, rules)
    assert (whole.state, str(whole.why), len(whole.text or "")) == (ArgumentState.NOT_RECORDED, "truncated", 40)


def test_null_is_a_value_and_empty_is_recorded() -> None:
    assert recorded_arguments({"a": None}, RULES).argument("a").is_absent is False
    assert recorded_arguments({}, RULES).argument("a").is_absent is True
    assert NOT_RECORDED.argument("a").is_absent is False


@pytest.mark.parametrize("value", [[1], "x", 3, None, True])
def test_what_is_no_object_is_unparsable(value: object) -> None:
    assert recorded_arguments(value, RULES).state is ArgumentState.UNPARSABLE


def test_deep_values_and_other_types_are_unparsable() -> None:
    deep: object = 1
    for _ in range(200):
        deep = [deep]
    assert recorded_arguments({"a": deep}, RULES).state is ArgumentState.UNPARSABLE
    assert recorded_arguments({"a": float("nan")}, RULES).state is ArgumentState.UNPARSABLE


def test_recorded_arguments_must_be_an_object_also_when_they_come_from_a_file() -> None:
    for text in (None, "[1]", "{", '{"a":1,"a":2}'):
        with pytest.raises(ValidationError):
            ToolArguments(state=ArgumentState.RECORDED, text=text)
    with pytest.raises(ValidationError):
        ToolArguments(state=ArgumentState.NOT_RECORDED)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.decimals(allow_nan=False, allow_infinity=False, places=3)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_compact_text_reads_back_as_the_same_value(value: object) -> None:
    text = compact_json(value)
    assert parse_json(text) == value
    assert compact_json(parse_json(text)) == text


@pytest.mark.parametrize("text", ["1e99999", "NaN", "Infinity", '{"a":1,"a":1}', "1" * 5000, "[" * 9999, "", "{"])
def test_json_beyond_the_limits_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_json(text)


def test_combining_is_symmetric_and_careful() -> None:
    one, other = recorded_arguments({"a": 1}, RULES), recorded_arguments({"a": 2}, RULES)
    broken = unparsable_arguments("{", RULES, detail="x")
    kinds = (one, other, broken, NOT_RECORDED, REDACTED, CONFLICTING)
    assert all(combined(a, b) == combined(b, a) for a in kinds for b in kinds)
    assert combined(one, other) == CONFLICTING
    assert combined(one, NOT_RECORDED) == one
    assert combined(one, CONFLICTING) == CONFLICTING
    assert combined(broken, NOT_RECORDED) == broken


def test_coverage_needs_a_declaration_and_no_reason() -> None:
    cut = CoverageReason(code=CoverageCode.FILE_CUT)
    assert not Coverage().is_complete
    assert Coverage().declared("x").is_complete
    assert not Coverage(reasons=(cut,)).declared("x").is_complete
    assert Coverage(declared_by="x").with_reasons(cut).declared_by == "x"
    self_reported = CoverageReason(code=CoverageCode.SELF_REPORTED)
    assert Coverage(reasons=(self_reported,)).reason_code is ReasonCode.EVIDENCE_SELF_REPORTED


def test_reasons_are_merged_whatever_their_order() -> None:
    reasons = [CoverageReason(code=CoverageCode.FILE_CUT, detail=d) for d in ("b", "", "a")]
    assert merge_reasons(tuple(reasons)) == merge_reasons(tuple(reversed(reasons)))
    assert merge_reasons(tuple(reasons))[0] == CoverageReason(code=CoverageCode.FILE_CUT, count=3, detail="a")
