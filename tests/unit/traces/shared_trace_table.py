"""What a careful reader finds in each of the shared trace files (index.md beside them); times as in the files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

NS, US, MS = 1, 2_000, 1_000_000
SCOPES = ("format.lossy", "scope.unknown")
ROOTLESS = ("format.lossy", "parent.missing", "root.missing")


@dataclass(frozen=True)
class Call:
    """One execution: name, call id, arguments (None: not recorded), how its result begins, and when it ran."""

    name: str
    call_id: str | None
    arguments: str | None
    result: str = ""
    times: tuple[int, int | None] | None = None


@dataclass(frozen=True)
class Trace:
    """A file that is read as a trace: its executions in order of start, and why it is not complete."""

    encoding: str
    calls: tuple[Call, ...] = ()
    unit: int = NS
    reasons: tuple[str, ...] = ("format.lossy",)
    excluded: tuple[tuple[str, str], ...] = ()
    possible: tuple[str, ...] = ()


@dataclass(frozen=True)
class Messages:
    """A file that is read as a conversation (one part of it, if `part` is given)."""

    encoding: str
    calls: tuple[Call, ...] = ()
    excluded: tuple[tuple[str, str], ...] = ()
    part: str | None = None


@dataclass(frozen=True)
class Refused:
    """A file that is no evidence, with what the error says."""

    says: str


def paris(times: tuple[int, int | None]) -> Call:
    return Call("get_weather", "call_paris_001", '{"location":"Paris"}', "rainy, 57", times)


SECOND = 10**9
T0 = 1_700_000_000 * SECOND
PARIS_AND_LONDON = (
    paris((T0 + 2 * SECOND, T0 + 3 * SECOND)),
    Call("get_weather", "call_london_001", '{"location":"London"}', times=(T0 + 3 * SECOND, T0 + 4 * SECOND)),
)
WEATHER_SF = '{"location":"San Francisco","unit":"c"}'
SF_RESULT = '{"condition":"partly cloudy"'
MATH_AGENT = (
    '{"description":"Calculate 42 * 7","prompt":"Calculate 42 * 7 and return the result.",'
    '"run_in_background":false,"subagent_type":"math-agent"}'
)
CONVERSION_AGENT = (
    '{"description":"Convert 294 miles to kilometers","prompt":"Convert 294 miles to kilometers and return the '
    'result.","run_in_background":false,"subagent_type":"conversion-agent"}'
)
CONVERT = (
    '{"command":"python3 -c \'miles = 294; km = miles / 0.621371; print(f\\"{miles} miles = {km:.4f} km\\")\'",'
    '"description":"Convert 294 miles to kilometers"}'
)
PUN, DAD, LINER = "call_X0OSgjUukT5inyEQvuZQnHrk", "call_WxZcCvSDhGT4RJHlcU01k10x", "call_aRaObiWKKt6GzgDkkUl3bu1Q"
TOPIC = '{"topic":"programming"}'
CAT_SKILL = "/bin/bash -lc 'cat /tmp/agent_skills_capture/codex/.agents/skills/pdf-processing/SKILL.md'"
EVAL_SET = Refused("eval set of ADK")


def skills(number: int, skill: str) -> Call:
    return Call("skills", f"tu-{number}", json.dumps({"skill_name": skill}, separators=(",", ":")))


TABLE: dict[str, Sequence[Trace | Messages | Refused]] = {
    "adk__home_dependent_tool_calls.json": [EVAL_SET],
    "adk__home_simple_test.json": [EVAL_SET],
    "adk__multi_turn.json": [EVAL_SET],
    "adk__order_query.json": [EVAL_SET],
    "adk__roll_die.json": [EVAL_SET],
    "deepeval__tool_call_flow_completion.json": [
        Trace(
            "deepeval",
            (Call("get_weather", None, WEATHER_SF, SF_RESULT, (1760703997025 * MS, 1760703997026 * MS)),),
            MS,
        )
    ],
    "deepeval__tool_call_flow_response.json": [
        Trace(
            "deepeval",
            (Call("get_weather", None, WEATHER_SF, SF_RESULT, (1760704032781 * MS, 1760704032781 * MS)),),
            MS,
        )
    ],
    # Answers alone: nobody asked for these calls in the file, so none of them counts as executed.
    "inspect__log_tool_call_error.json": [Messages("openai_chat")],
    "inspect__parallel_spans.json": [Trace("inspect")],
    "langfuse__autogen-2025-06-06.json": [Trace("langfuse")],
    "langfuse__crewai-2025-07-11.json": [Trace("langfuse", reasons=SCOPES)],
    "langfuse__google-adk-2025-08-28.json": [
        Trace(
            "langfuse",
            (
                Call(
                    "say_hello",
                    "adk-8bd8dc65-717d-4102-858b-3a1dd6b75a00",
                    "{}",
                    '{"id":"adk-8bd8dc65',
                    (1756366351216 * MS, 1756366351217 * MS),
                ),
            ),
            MS,
        )
    ],
    "langfuse__google-gemini-2025-08-01.json": [Trace("langfuse")],
    "langfuse__langgraph-python-2025-08-22.json": [
        Trace(
            "langfuse",
            reasons=("format.lossy", "proposal.unanswered", "tool.unnamed"),
            possible=("a plain span that gave the answer of a tool (Web-Search)",),
        )
    ],
    "langfuse__llamaindex-2025-06-05.json": [Trace("langfuse", reasons=SCOPES)],
    "langfuse__microsoft-agent-2025-12-17.json": [
        Trace(
            "langfuse",
            (
                Call(
                    "get_weather",
                    "call_CwaJHuXTm9dmHFQPlVbqyzJ0",
                    '{"location":"Tokyo, Japan"}',
                    '"The weather in Tokyo, Japan is stormy',
                    (1765964260551 * MS, 1765964260551 * MS),
                ),
            ),
            MS,
        )
    ],
    "langfuse__openai-agents-2025-09-30.json": [
        Trace(
            "langfuse",
            (
                Call(
                    "get_weather",
                    None,
                    '{"city":"Tokyo"}',
                    "The weather in Tokyo is sunny.",
                    (1759223041000 * MS, 1759223041000 * MS),
                ),
            ),
            MS,
        )
    ],
    "langfuse__pydantic-ai-tools-2025-06-06.json": [Trace("langfuse", reasons=SCOPES)],
    "langfuse__pydantic-ai-tools-2025-12-04.json": [
        Trace(
            "langfuse",
            (
                Call("get_pun_suggestion", PUN, TOPIC, "Pun idea", (1764859884416 * MS, 1764859884422 * MS)),
                Call("get_dad_joke_suggestion", DAD, TOPIC, "Dad joke", (1764859884417 * MS, 1764859884422 * MS)),
                Call("get_one_liner_suggestion", LINER, TOPIC, "One-liner", (1764859884417 * MS, 1764859884422 * MS)),
            ),
            MS,
            reasons=SCOPES,
        )
    ],
    "otlp__trace.json": [Trace("otlp-json", reasons=("parent.missing", "root.missing", "scope.unknown"))],
    "pydantic-ai__anthropic_parallel_tool_calls.yaml": [
        Messages(
            "anthropic",
            (
                Call("retrieve_entity_info", "toolu_0167cfEnoQaPviGdVXA95zcu", '{"name":"Alice"}'),
                Call("retrieve_entity_info", "toolu_01EEe2V5HD1Ac4rKiUR4HD2T", '{"name":"Bob"}'),
                Call("retrieve_entity_info", "toolu_01XFyAjstT3966qvRynZyVPo", '{"name":"Charlie"}'),
                Call("retrieve_entity_info", "toolu_013mnQZbgtK2oe3Mo3XKJsx3", '{"name":"Daisy"}'),
            ),
        )
    ],
    "pydantic-ai__bedrock_tool_call.yaml": [
        Messages("bedrock", (Call("get_temperature", "functions.get_temperature:0", '{"city":"London"}'),))
    ],
    "pydantic-ai__openai_multiple_agent_tool_calls.yaml": [
        Messages(
            "gemini, openai_chat",
            (
                Call("get_capital", "pyd_ai_504f8147f83f44f3a5f14d87bfd01bda", '{"country":"France"}'),
                Call("get_capital", "call_SkEQ3ZGSJC8m6AvaIGNuuKdm", '{"country":"England"}'),
            ),
        )
    ],
    "pydantic-ai__tool_calls_without_id.yaml": [
        Messages("openai_chat", (Call("get_current_time", "pyd_ai_cee885c699414386a7e14b7ec43cadbc", "{}"),))
    ],
    "strands-evals__adk_live_spans.json": [
        Trace(
            "plain-spans",
            (
                Call(
                    "calculator",
                    "uwpsprd2",
                    '{"expression":"15 * 37"}',
                    '{"result": "555"}',
                    (1784995767655639000, 1784995767656160000),
                ),
            ),
        )
    ],
    "strands-evals__autogen_live_spans.json": [
        Trace(
            "plain-spans",
            (
                Call(
                    "calculate",
                    "toolu_bdrk_011nDreLrC9nv8NZs6iGrx6d",
                    None,
                    times=(1784744883555970242, 1784744883556256909),
                ),
            ),
        )
    ],
    "strands-evals__claude_adot_spans.json": [
        Trace(
            "plain-spans",
            (
                Call(
                    "Agent",
                    "toolu_bdrk_013DnTxpqTDkwezwKkHizcHT",
                    MATH_AGENT,
                    '{"status": "completed"',
                    (1786051886396129012, 1786051890339601282),
                ),
                Call(
                    "Agent",
                    "toolu_bdrk_01RQYH5cNSJ2iYbufJ8VbEk4",
                    CONVERSION_AGENT,
                    '{"status": "completed"',
                    (1786051887131417419, 1786051902970334584),
                ),
                Call(
                    "Bash",
                    "toolu_bdrk_01SW1rX7PUer9zBaVQv9wLUa",
                    '{"command":"echo $((42 * 7))","description":"Calculate 42 * 7"}',
                    '{"stdout": "294"',
                    (1786051888270252114, 1786051888526973038),
                ),
                Call(
                    "Bash",
                    "toolu_bdrk_01T4wcJbc3MxsEgsGoQEowaa",
                    CONVERT,
                    '{"stdout": "Configuration',
                    (1786051890133570663, 1786051901406971244),
                ),
            ),
            reasons=ROOTLESS,
        )
    ],
    "strands-evals__openai_agents_genai_live_spans.json": [
        Trace(
            "plain-spans",
            (
                Call(
                    "ask_research_specialist",
                    None,
                    '{"query":"current stock price of AMZN"}',
                    "The current stock price",
                    (1786724982074439000, 1786724984190449000),
                ),
                Call(
                    "lookup_stock_price",
                    None,
                    '{"ticker":"AMZN"}',
                    "AMZN: $240.98",
                    (1786724983181903000, 1786724983182425000),
                ),
                Call(
                    "ask_math_specialist",
                    None,
                    '{"query":"240.98 multiplied by 1000"}',
                    "To calculate",
                    (1786724991199826000, 1786724995899618000),
                ),
                Call(
                    "multiply_numbers",
                    None,
                    '{"a":240,"b":1000}',
                    "240000",
                    (1786724992165618000, 1786724992166080000),
                ),
                Call("multiply_numbers", None, '{"a":0,"b":1000}', "0", (1786724993699804000, 1786724993700267000)),
            ),
            reasons=ROOTLESS,
        )
    ],
    "strands-evals__openinference_live_spans.json": [
        Trace(
            "plain-spans",
            (
                Call(
                    "finish",
                    "toolu_002",
                    '{"answer":"Taipei is warmer"}',
                    '{"content": "Taipei is warmer',
                    (T0 + 3 * SECOND, T0 + 4 * SECOND),
                ),
            ),
            unit=256,
            reasons=("format.lossy", "proposal.unanswered", "tool.unnamed"),
            possible=("an agent or a tool with agent in its name: route_to_agent",),
        )
    ],
    "strands-evals__otel_genai_convention_spans.json": [Trace("plain-spans", PARIS_AND_LONDON)],
    "strands-evals__pydantic_ai_live_spans.json": [
        Trace(
            "plain-spans",
            (
                Call(
                    "get_weather",
                    "tooluse_ThYFd3WOkO59ZUHC77SIdX",
                    '{"city":"Seattle"}',
                    "62°F, cloudy with light rain",
                    (1784744270611270959, 1784744270611689839),
                ),
            ),
        )
    ],
    "strands-evals__smolagents_live_spans.json": [
        Trace(
            "plain-spans",
            (
                Call(
                    "web_search",
                    None,
                    '{"query":"population of Tokyo"}',
                    "## Search Results",
                    (1784230699180747272, 1784230699972102125),
                ),
            ),
            excluded=(("final_answer", "output_function"),),
        )
    ],
    "strands-evals__x_claude_code_skill_tool.json": [
        Messages(
            "anthropic",
            (Call("Skill", "toolu_bdrk_017tApeVjBHWpYV5SVrPQcoD", '{"args":"report.pdf","skill":"pdf-processing"}'),),
        )
    ],
    "strands-evals__x_codex_exec_json.json": [
        Messages(
            "codex",
            (Call("command_execution", "item_1", json.dumps({"command": CAT_SKILL}, separators=(",", ":"))),),
        )
    ],
    # Several captures in one file, which are no one conversation; each of them is read.
    "strands-evals__x_google_adk_load_skill.json": [
        Refused("holds 3 conversations: loaded, not_found, missing_arg"),
        Messages("gemini", (Call("load_skill", "adk-1", '{"skill_name":"pdf-processing"}'),), part="loaded"),
        Messages("gemini", (Call("load_skill", "adk-1", '{"skill_name":"pdf-procesing"}'),), part="not_found"),
        Messages("gemini", excluded=(("load_skill", "invalid_arguments"),), part="missing_arg"),
    ],
    "strands-evals__x_strands_agent_skills.json": [
        Refused("holds 6 conversations: loaded, typo_refusal"),
        Messages("bedrock", (skills(1, "pdf-processing"),), part="loaded"),
        Messages("bedrock", (skills(1, "pdf-procesing"),), part="typo_refusal"),
        Messages("bedrock", (skills(1, ""),), part="empty_name_refusal"),
        Messages("bedrock", (skills(1, "pdf-procesing"), skills(2, "pdf-processing")), part="retry_after_refusal"),
        Messages("bedrock", (skills(1, "pdf-processing"), skills(2, "spreadsheet-analysis")), part="two_skills"),
        Messages("bedrock", (skills(1, "pdf-processing"), skills(2, "pdf-processing")), part="repeated_load"),
    ],
    "generated/hostile.json": [
        Trace(
            "otlp-json",
            (paris((T0 + 2 * SECOND, None)),),
            reasons=("dropped.attributes", "span.unfinished", "tool.unnamed"),
            possible=("a tool was executed, its name is not recorded (execute_tool get_weather)",),
        )
    ],
    "generated/nonstd_phoenix_snake.json": [Trace("otlp-json", PARIS_AND_LONDON, US)],
    "generated/nonstd_protobuf_json.json": [Trace("otlp-json", PARIS_AND_LONDON, reasons=())],
    "generated/otlp.json": [Trace("otlp-json", PARIS_AND_LONDON, reasons=())],
    "generated/otlp.json.gz": [Trace("otlp-json, gzip", PARIS_AND_LONDON, reasons=())],
    "generated/otlp.pb": [Trace("otlp-protobuf", PARIS_AND_LONDON, reasons=())],
    "generated/otlp_collector.jsonl": [Trace("otlp-json lines", PARIS_AND_LONDON, reasons=())],
    "generated/otlp_collector_delimited.pb": [Trace("otlp-protobuf, length-prefixed", PARIS_AND_LONDON, reasons=())],
}
