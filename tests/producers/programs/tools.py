"""The tools that every agent here has. Each of them writes down that it ran: that is the truth a trace is held to.

`executed` writes a line when a tool starts and one when it ends, into calls.jsonl in the current folder. Annotations are
real here, not text: frameworks make schemas of them.
"""

import itertools
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

_NUMBERS = itertools.count()
_LOCK = threading.Lock()
PREFIX = ""
"""What the framework puts before the names of these tools."""


@dataclass
class Filters:
    """Which documents to look through."""

    tags: list[str]
    limit: int


class NoTableError(Exception):
    """What `book_table` raises, always."""


@dataclass
class Running:
    """A call that runs; `result` is what it will give."""

    result: Any = None


def _write(line: dict[str, Any]) -> None:
    with _LOCK, open("calls.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump()
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


@contextmanager
def executed(tool: str, **arguments: Any) -> Iterator[Running]:
    """What happens inside is one execution of `tool` with these arguments."""
    number, running = next(_NUMBERS), Running()
    plain = {name: _plain(value) for name, value in arguments.items()}
    _write({"call": number, "tool": PREFIX + tool, "arguments": plain, "started_ns": time.time_ns()})
    try:
        time.sleep(0.005)
        yield running
    except BaseException as error:
        _write({"call": number, "outcome": "raised", "result": str(error), "ended_ns": time.time_ns()})
        raise
    _write({"call": number, "outcome": "returned", "result": _plain(running.result), "ended_ns": time.time_ns()})


def search(query: str, filters: Filters) -> list[str]:
    """Find documents.

    Args:
        query: what to look for
        filters: which documents to look through
    """
    with executed("search", query=query, filters=filters) as call:
        call.result = ["Rechnung № 7", "発票 ‘7’"]
        return call.result


def weather(city: str) -> str:
    """Tell the weather in a city.

    Args:
        city: name of the city
    """
    with executed("weather", city=city) as call:
        call.result = f"-3.5 °C in {city}"
        return call.result


def send_email(to: list[str], body: str) -> str:
    """Send an e-mail.

    Args:
        to: the addresses of the receivers
        body: the text
    """
    with executed("send_email", to=to, body=body) as call:
        if "cut_short" in sys.argv:
            # Not os._exit: Logfire ends all open spans there.
            os.kill(os.getpid(), signal.SIGKILL)
        call.result = "sent ✓"
        return call.result


def book_table(people: int) -> str:
    """Book a table in the restaurant.

    Args:
        people: for how many people
    """
    with executed("book_table", people=people):
        raise NoTableError("the restaurant is full – «complet»")


TOOLS = (search, weather, send_email, book_table)
