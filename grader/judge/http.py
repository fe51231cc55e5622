"""A judge behind a chat-completions URL.

One attempt has a bound in time and in bytes; 429 and 5xx are tried again, a bounded number of times, with longer and
longer waits; nothing else is. Redirects are not followed, so that the key goes nowhere else. Structured output is asked
for until the endpoint says that it does not know it. Every failure is a reply that says so, never an exception.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType

import anyio
import httpx

from grader.core.judging.judgement import Attempt, ChatMessage, Failure, JudgeReply
from grader.core.reasons import ReasonCode
from grader.errors import UsageError
from grader.judge.endpoint import Endpoint
from grader.judge.responses import Completion, error_text, is_overflow, lacks_structured_output, read_completion

_MOST_ERROR_BYTES = 64 << 10
_RETRIED = frozenset({429, *range(500, 600)})


class Structured(StrEnum):
    """Whether structured output is asked for."""

    AUTO = "auto"
    """Until the endpoint says that it does not know it."""
    OFF = "off"


@dataclass(frozen=True)
class HttpOptions:
    """Bounds of the client, and settings of the model; None: not sent, so the endpoint's own."""

    max_parallel: int = 4
    timeout_s: float = 120.0
    """Of one attempt, from the first byte sent to the last received."""
    connect_timeout_s: float = 10.0
    retries: int = 3
    """How often one request is tried again after 429 or 5xx."""
    first_wait_s: float = 1.0
    """Before the first retry; doubled for each that follows, or as long as the endpoint's Retry-After says."""
    longest_wait_s: float = 30.0
    max_response_bytes: int = 4 << 20
    temperature: float | None = None
    max_tokens: int | None = None
    structured: Structured = Structured.AUTO

    def __post_init__(self) -> None:
        """Bounds are bounds."""
        wrong = (
            self.max_parallel < 1
            or not 0 < self.timeout_s < float("inf")
            or not 0 < self.connect_timeout_s < float("inf")
            or self.retries < 0
            or self.first_wait_s < 0
            or self.longest_wait_s < 0
            or self.max_response_bytes < 1
        )
        if wrong:
            raise UsageError("a bound of the judge's client is negative, zero or endless")


@dataclass
class Usage:
    """What a client has used, over all its requests."""

    requests: int = 0
    """HTTP requests, retries among them."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    without_tokens: int = 0
    """Answers whose token counts the endpoint did not report."""


@dataclass(frozen=True)
class _Received:
    """One HTTP answer: its status and as much of its body as may be read; or why there is none."""

    status: int | None = None
    body: bytes = b""
    retry_after_s: float | None = None
    is_too_large: bool = False
    failure: Failure | None = None


@dataclass
class _Asking:
    """One request while it is being answered."""

    messages: Sequence[ChatMessage]
    schema: dict[str, object]
    began_s: float
    attempts: list[Attempt] = field(default_factory=list[Attempt])


class HttpJudge:
    """Asks one endpoint; an async context manager. `usage` counts requests and tokens."""

    def __init__(self, endpoint: Endpoint, options: HttpOptions | None = None) -> None:
        self._endpoint = endpoint
        self._options = options if options is not None else HttpOptions()
        self._structured = self._options.structured is Structured.AUTO
        self._limiter = anyio.Semaphore(self._options.max_parallel)
        self._client: httpx.AsyncClient | None = None
        self.usage = Usage()

    @property
    def endpoint(self) -> str:
        """Scheme, host and path of the URL."""
        return self._endpoint.shown

    @property
    def model(self) -> str:
        """The model that is asked for."""
        return self._endpoint.model

    async def __aenter__(self) -> HttpJudge:
        options = self._options
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(options.timeout_s, connect=options.connect_timeout_s),
            limits=httpx.Limits(max_connections=options.max_parallel, max_keepalive_connections=options.max_parallel),
            follow_redirects=False,
            headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "grader"},
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        client, self._client = self._client, None
        if client is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(5):
                await client.aclose()

    async def ask(self, messages: Sequence[ChatMessage], schema: dict[str, object]) -> JudgeReply:
        """One answer, or why there is none."""
        async with self._limiter:
            return await self._ask(_Asking(messages, schema, time.monotonic()))

    async def _ask(self, asking: _Asking) -> JudgeReply:
        options = self._options
        tries = 0
        while True:
            structured = self._structured
            received = await self._send(asking, structured=structured)
            if received.status == 200:
                return self._answered(asking, received)
            body = received.body.decode("utf-8", "replace")
            if structured and received.status is not None and lacks_structured_output(received.status, body):
                self._structured = False
                asking.attempts.append(Attempt(status=received.status, detail="does not know structured output"))
                continue
            if received.status not in _RETRIED or tries >= options.retries:
                return self._failed(asking, received, body)
            wait_s = max(options.first_wait_s * 2**tries, received.retry_after_s or 0.0)
            wait_s = min(wait_s, options.longest_wait_s)
            tries += 1
            asking.attempts.append(Attempt(status=received.status, waited_ms=round(wait_s * 1000)))
            await anyio.sleep(wait_s)

    def _answered(self, asking: _Asking, received: _Received) -> JudgeReply:
        asking.attempts.append(Attempt(status=200))
        if received.is_too_large:
            detail = f"the answer is larger than {self._options.max_response_bytes:,} bytes"
            return self._reply(asking, Completion(None, Failure(code=ReasonCode.JUDGE_UNPARSABLE, detail=detail)))
        found = read_completion(received.body)
        self.usage.prompt_tokens += found.tokens.prompt or 0
        self.usage.completion_tokens += found.tokens.completion or 0
        self.usage.without_tokens += found.tokens.prompt is None
        return self._reply(asking, found)

    def _failed(self, asking: _Asking, received: _Received, body: str) -> JudgeReply:
        if received.failure is not None:
            asking.attempts.append(Attempt(detail=self._harmless(received.failure.detail)))
            return self._reply(asking, Completion(None, received.failure))
        assert received.status is not None
        asking.attempts.append(Attempt(status=received.status))
        tries = sum(attempt.status in _RETRIED for attempt in asking.attempts)
        again = f", {tries} times" if tries > 1 else ""
        detail = f"HTTP {received.status}{again}: {error_text(self._harmless(body))}"
        overflow = is_overflow(received.status, body)
        code = ReasonCode.JUDGE_OVERFLOW if overflow else ReasonCode.JUDGE_UNAVAILABLE
        return self._reply(asking, Completion(None, Failure(code=code, detail=detail)))

    def _reply(self, asking: _Asking, found: Completion) -> JudgeReply:
        failure = found.failure
        if failure is not None:
            failure = failure.model_copy(update={"detail": self._harmless(failure.detail)})
        return JudgeReply(
            content=self._harmless(found.content) if found.content is not None else None,
            failure=failure,
            model=self._harmless(found.model) if found.model is not None else None,
            tokens=found.tokens,
            latency_ms=round((time.monotonic() - asking.began_s) * 1000),
            attempts=tuple(asking.attempts),
        )

    def _harmless(self, text: str) -> str:
        """What came from the endpoint, storable, and without the key, which endpoints like to repeat in errors."""
        return self._endpoint.key.taken_out_of(text).encode("utf-8", "backslashreplace").decode("utf-8")

    async def _send(self, asking: _Asking, *, structured: bool) -> _Received:
        """One attempt."""
        self.usage.requests += 1
        try:
            with anyio.fail_after(self._options.timeout_s):
                return await self._exchange(self._body(asking, structured=structured))
        except (TimeoutError, httpx.TimeoutException):
            return _lost(f"no answer within {self._options.timeout_s:g} s")
        except httpx.HTTPError as error:
            return _lost(f"the connection failed: {type(error).__name__}: {str(error)[:200]}")

    async def _exchange(self, body: dict[str, object]) -> _Received:
        if self._client is None:
            raise UsageError("the judge is not open", hint="use it as `async with HttpJudge(...) as judge:`")
        key = self._endpoint.key.reveal()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with self._client.stream("POST", self._endpoint.completions_url, json=body, headers=headers) as response:
            most = self._options.max_response_bytes if response.status_code == 200 else _MOST_ERROR_BYTES
            if response.headers.get("content-encoding", "identity") != "identity":
                return _lost("the endpoint compresses its answer, which was not asked for")
            parts: list[bytes] = []
            size = 0
            async for part in response.aiter_raw():
                size += len(part)
                if size > most:
                    break
                parts.append(part)
            return _Received(
                response.status_code, b"".join(parts), _seconds(response.headers.get("retry-after")), size > most
            )

    def _body(self, asking: _Asking, *, structured: bool) -> dict[str, object]:
        body: dict[str, object] = {
            "model": self.model,
            "messages": [message.model_dump() for message in asking.messages],
        }
        if self._options.temperature is not None:
            body["temperature"] = self._options.temperature
        if self._options.max_tokens is not None:
            body["max_tokens"] = self._options.max_tokens
        if structured:
            schema = {"name": "answer", "strict": True, "schema": asking.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body


def _lost(detail: str) -> _Received:
    return _Received(failure=Failure(code=ReasonCode.JUDGE_UNAVAILABLE, detail=detail))


def _seconds(retry_after: str | None) -> float | None:
    """Retry-After in seconds; as a date it is not heeded."""
    if retry_after is None or not retry_after.strip().isdecimal() or len(retry_after) > 9:
        return None
    return float(retry_after)
