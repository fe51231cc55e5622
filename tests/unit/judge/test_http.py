"""The client against a real server on 127.0.0.1: every way in which an endpoint can answer, or not."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from grader.core.judging.judgement import ChatMessage, JudgeReply
from grader.core.reasons import ReasonCode
from grader.errors import PrerequisiteError, UsageError
from grader.judge.endpoint import Endpoint, Secret, endpoint_from_environment
from grader.judge.http import HttpJudge, HttpOptions, Structured
from tests.scripted_judge import Drop, Raw, Say, Script, ScriptedJudge, Stall, Status

KEY = "sk-very-secret-0123456789"
MESSAGES = (ChatMessage(role="system", content="be fair"), ChatMessage(role="user", content="well?"))
SCHEMA: dict[str, object] = {"type": "object"}
QUICK = HttpOptions(timeout_s=5, first_wait_s=0.01, longest_wait_s=0.05, retries=3)
UNAVAILABLE, UNPARSABLE, OVERFLOW = (
    ReasonCode.JUDGE_UNAVAILABLE,
    ReasonCode.JUDGE_UNPARSABLE,
    ReasonCode.JUDGE_OVERFLOW,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def ask(server: ScriptedJudge, options: HttpOptions = QUICK, key: str = KEY) -> JudgeReply:
    async with HttpJudge(Endpoint(server.url, "m-1", Secret(key)), options) as judge:
        return await judge.ask(MESSAGES, SCHEMA)


async def test_a_good_answer_with_what_was_sent() -> None:
    with ScriptedJudge([Say("fine", model="m-1-0613", tokens=(12, 3))]) as server:
        reply = await ask(server)
    assert (reply.content, reply.failure, reply.model) == ("fine", None, "m-1-0613")
    assert (reply.tokens.prompt, reply.tokens.completion) == (12, 3)
    assert reply.latency_ms is not None
    assert [attempt.status for attempt in reply.attempts] == [200]
    (sent,) = server.requests
    assert sent["model"] == "m-1"
    assert sent["messages"] == [{"role": "system", "content": "be fair"}, {"role": "user", "content": "well?"}]
    assert sent["response_format"]["json_schema"]["schema"] == SCHEMA
    assert "temperature" not in sent
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert server.paths == ["/v1/chat/completions"]


async def test_settings_of_the_model_are_sent() -> None:
    with ScriptedJudge([Say("fine")]) as server:
        await ask(server, HttpOptions(temperature=0.0, max_tokens=7, structured=Structured.OFF), key="")
    assert (server.requests[0]["temperature"], server.requests[0]["max_tokens"]) == (0.0, 7)
    assert "response_format" not in server.requests[0]
    assert "Authorization" not in server.headers[0]


async def test_429_and_5xx_are_tried_again_and_recorded() -> None:
    script = [Status(429, headers={"Retry-After": "1"}), Status(503), Say("fine")]
    with ScriptedJudge(script) as server:
        reply = await ask(server)
    assert reply.content == "fine"
    # Retry-After is heeded, but no longer than the longest wait.
    assert [(attempt.status, attempt.waited_ms) for attempt in reply.attempts] == [(429, 50), (503, 20), (200, None)]


async def test_500_for_ever_ends() -> None:
    with ScriptedJudge([Status(500, '{"error": {"message": "overloaded"}}')]) as server:
        reply = await ask(server)
    assert len(server.requests) == 4
    assert reply.failure is not None
    assert reply.failure.code is UNAVAILABLE
    assert reply.failure.detail == 'HTTP 500, 4 times: "overloaded"'


@pytest.mark.parametrize("code", [301, 400, 401, 403, 404, 418])
async def test_nothing_else_is_tried_again(code: int) -> None:
    with ScriptedJudge([Status(code, headers={"Location": "http://127.0.0.1:1/"}), Say("fine")]) as server:
        reply = await ask(server)
    assert len(server.requests) == 1
    assert reply.failure is not None
    assert reply.failure.code is UNAVAILABLE


async def test_a_redirect_is_not_followed_so_that_the_key_goes_nowhere_else() -> None:
    with ScriptedJudge([Say("stolen")]) as elsewhere:
        away = Status(307, headers={"Location": f"{elsewhere.url}/chat/completions"})
        with ScriptedJudge([away]) as server:
            reply = await ask(server)
        assert elsewhere.headers == []
    assert reply.failure is not None
    assert reply.failure.code is UNAVAILABLE


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        (Drop(), UNAVAILABLE, "the connection failed"),
        (Stall(), UNAVAILABLE, "no answer within 0.3 s"),
        (Say("x" * 50, drip_s=0.05), UNAVAILABLE, "no answer within 0.3 s"),
        (Say("", refusal="I would rather not"), UNPARSABLE, 'the judge refused: "I would rather not"'),
        (Say("half", finish="length"), UNPARSABLE, "cut at its token limit"),
        (Say("", finish="content_filter"), UNPARSABLE, "withheld by a content filter"),
        (Raw(b"<html>busy</html>"), UNPARSABLE, "no JSON"),
        (Raw(b'{"choices": [{"message": {"content": "{}"}'), UNPARSABLE, "no JSON"),
        (Raw(b"[]"), UNPARSABLE, "no JSON object"),
        (Raw(b"\xff\xfe"), UNPARSABLE, "no JSON"),
        (Raw(b'{"choices": []}'), UNPARSABLE, "no choices[0].message.content"),
        (Raw(b'{"choices": [{"message": {"content": null}}]}'), UNPARSABLE, "no choices[0].message.content"),
        (Raw(b"[" * 100_000), UNPARSABLE, "no JSON"),
        (Raw(b" " * 70_000, endless=True), UNPARSABLE, "larger than 1,000,000 bytes"),
        (Raw(b"x", headers={"Content-Encoding": "gzip"}), UNAVAILABLE, "compresses its answer"),
        (Status(400, '{"error": {"code": "context_length_exceeded", "message": "too long"}}'), OVERFLOW, "too long"),
        (Status(413, "too large"), OVERFLOW, "too large"),
        (Status(400, '{"error": {"message": "bad temperature"}}'), UNAVAILABLE, "bad temperature"),
    ],
)
async def test_failures(script: Script, code: ReasonCode, said: str) -> None:
    options = HttpOptions(timeout_s=0.3 if not isinstance(script, Raw) else 5, max_response_bytes=1_000_000)
    with ScriptedJudge([script]) as server:
        reply = await ask(server, options)
        assert len(server.requests) == 1
    assert reply.content is None
    assert reply.failure is not None
    assert (reply.failure.code, said in reply.failure.detail) == (code, True), reply.failure


async def test_a_server_that_is_gone_is_unavailable() -> None:
    server = ScriptedJudge([Say("fine")])
    with server:
        pass
    reply = await ask(server)
    assert reply.failure is not None
    assert reply.failure.code is UNAVAILABLE


async def test_structured_output_is_given_up_once() -> None:
    unknown = Status(400, '{"error": {"message": "response_format json_schema is not supported"}}')
    with ScriptedJudge([unknown, Say("fine")]) as server:
        async with HttpJudge(Endpoint(server.url, "m", Secret(KEY)), QUICK) as judge:
            first, second = [await judge.ask(MESSAGES, SCHEMA) for _ in range(2)]
    assert (first.content, second.content) == ("fine", "fine")
    assert ["response_format" in sent for sent in server.requests] == [True, False, False]
    assert first.attempts[0].detail == "does not know structured output"


async def test_no_more_at_once_than_allowed_and_all_is_counted() -> None:
    def react(_: dict[str, Any]) -> Script:
        return Say("fine", tokens=(100, 20))

    with ScriptedJudge(react) as server:
        async with HttpJudge(Endpoint(server.url, "m"), HttpOptions(max_parallel=3)) as judge:
            async with anyio.create_task_group() as group:
                for _ in range(30):
                    group.start_soon(judge.ask, MESSAGES, SCHEMA)
            usage = judge.usage
    assert server.most_at_once <= 3
    assert (usage.requests, usage.prompt_tokens, usage.completion_tokens) == (30, 3_000, 600)


async def test_cancellation_hangs_up_at_once() -> None:
    with ScriptedJudge([Stall()]) as server:
        async with HttpJudge(Endpoint(server.url, "m"), HttpOptions(timeout_s=60)) as judge:
            with anyio.fail_after(5):
                async with anyio.create_task_group() as group:
                    group.start_soon(judge.ask, MESSAGES, SCHEMA)
                    while not server.requests:  # noqa: ASYNC110 - the server is another thread
                        await anyio.sleep(0.01)
                    group.cancel_scope.cancel()
        assert server.hung_up.wait(5)


@pytest.mark.parametrize(
    "script",
    [
        [Say(f"my key is {KEY}", model=KEY)],
        [Status(401, f'{{"error": {{"message": "Incorrect API key provided: {KEY}"}}}}')],
        [Status(500, KEY)],
        [Say("", refusal=KEY)],
        [Drop()],
        [Stall()],
    ],
)
async def test_the_key_is_shown_nowhere(script: Sequence[Script], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with ScriptedJudge(script) as server:
        judge = HttpJudge(Endpoint(server.url, "m", Secret(KEY)), HttpOptions(timeout_s=0.3, retries=0))
        async with judge:
            reply = await judge.ask(MESSAGES, SCHEMA)
    shown = (reply.model_dump_json(), repr(reply), str(reply), repr(judge), repr(Secret(KEY)), f"{Secret(KEY)}")
    for text in (*shown, repr(Endpoint(server.url, "m", Secret(KEY))), caplog.text):
        assert KEY not in text
    assert any(KEY in header["Authorization"] for header in server.headers)


async def test_a_secret_is_not_pickled_nor_compared() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Secret(KEY))
    assert Secret(KEY) != Secret(KEY)
    assert Secret("none").taken_out_of('{"value": "none"}') == '{"value": "none"}'


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"http://user:{KEY}@host/v1", "user or password"),
        (f"https://host/v1?key={KEY}", "parameters"),
        (f"ftp://{KEY}", "is none"),
        (f"http://host:{KEY}/", "is none"),
        ("/v1", "is none"),
    ],
)
async def test_a_url_with_a_secret_is_refused_and_not_shown(url: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        Endpoint(url, "m")
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_urls() -> None:
    for url in ("http://h:1/v1", "http://h:1/v1/", "http://h:1/v1/chat/completions", "http://h:1/v1/chat/completions/"):
        assert Endpoint(url, "m").completions_url == "http://h:1/v1/chat/completions"
    azure = Endpoint("https://h/openai/chat/completions?api-version=1", "m")
    assert azure.completions_url.endswith("?api-version=1")
    assert azure.shown == "https://h/openai/chat/completions"


async def test_the_environment() -> None:
    found = endpoint_from_environment(
        {"GRADER_JUDGE_URL": " http://h/v1 ", "GRADER_JUDGE_MODEL": "m", "GRADER_JUDGE_KEY": f"{KEY}\n"}
    )
    assert (found.url, found.model, found.key.reveal()) == ("http://h/v1", "m", KEY)
    with pytest.raises(PrerequisiteError, match="GRADER_JUDGE_URL and GRADER_JUDGE_MODEL not set"):
        endpoint_from_environment({})
    with pytest.raises(UsageError, match="characters that no key has"):
        endpoint_from_environment(
            {"GRADER_JUDGE_URL": "http://h", "GRADER_JUDGE_MODEL": "m", "GRADER_JUDGE_KEY": "a\nb"}
        )


async def test_bounds_are_bounds() -> None:
    for options in ({"timeout_s": 0}, {"retries": -1}, {"max_parallel": 0}, {"timeout_s": float("inf")}):
        with pytest.raises(UsageError):
            HttpOptions(**options)  # pyright: ignore[reportArgumentType]


async def test_a_client_that_is_not_open_is_the_callers_mistake() -> None:
    with pytest.raises(UsageError, match="not open"):
        await HttpJudge(Endpoint("http://127.0.0.1:9/v1", "m")).ask(MESSAGES, SCHEMA)


async def test_what_is_sent_is_json_whatever_is_in_it() -> None:
    hostile = (ChatMessage(role="user", content='\x00"\\\u2028' + "é" * 3),)
    with ScriptedJudge([Say("fine")]) as server:
        async with HttpJudge(Endpoint(server.url, "m")) as judge:
            await judge.ask(hostile, SCHEMA)
    assert json.loads(json.dumps(server.requests[0]))["messages"][0]["content"] == hostile[0].content
