"""One run of an agent whose model is a script: what the model asks for, and how the run goes into the truth.

    python PROGRAM.py SCENARIO      # in an empty folder: leaves trace.jsonl, calls.jsonl, ended.json

Standard library only: the same file is used in the environment of every producer.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scripted_model import Call, ScriptedModel, Turn

SEARCH = {"query": "Zoë’s 発票 “№ 7”", "filters": {"tags": ["überfällig", "a/b"], "limit": 3}}
SEND = {"to": ["zoë@example.org", "bob@example.org"], "body": 'Line one\n\tLine "two" – ✉ 🎉 \\ end'}


@dataclass(frozen=True)
class Special:
    """The calls that a framework offers beside ordinary tools; None where it has no such thing."""

    handoff: Call | None = None
    """Gives the run to another agent, which has the tool `weather`."""
    sub_agent: Call | None = None
    """Asks another agent, which has the tool `weather`, as a tool."""
    output: Call | None = None
    """The final answer, given as a call."""
    prefix: str = ""
    """What the framework puts before the names of tools."""
    without: tuple[str, ...] = ()
    """Scenarios that cannot be made here."""
    answers_by: str | None = None
    """The tool by which every final answer is given, by frameworks that know no other way."""


@dataclass(frozen=True)
class Scenario:
    """A run to make."""

    name: str
    turns: tuple[Turn, ...]


def weather(city: str, number: int = 0) -> Call:
    return Call("weather", {"city": city}, number)


def turns_of(name: str, special: Special) -> tuple[Turn, ...] | None:
    """What the model says, request by request; None where the framework has no such thing."""
    turns = None if name in special.without else _turns_of(name, special)
    return None if turns is None else tuple(_as_offered(turn, special) for turn in turns)


def _as_offered(turn: Turn, special: Special) -> Turn:
    if not isinstance(turn, str):
        return tuple(Call(special.prefix + call.name, call.arguments, call.number) for call in turn)
    return turn if special.answers_by is None else (Call(special.answers_by, {"answer": turn}),)


def _turns_of(name: str, special: Special) -> tuple[Turn, ...] | None:
    search, send = Call("search", SEARCH), Call("send_email", SEND)
    if name == "in_order":
        return ((search,), (send,), "Sent.")
    if name == "parallel":
        return ((weather("Kyōto"), weather("Zürich"), search), "Compared.")
    if name == "twice":
        return ((weather("Oslo"), weather("Oslo", 1)), (weather("Oslo", 2),), "Still cold.")
    if name == "raises":
        return ((Call("book_table", {"people": 2}),), (weather("Oslo"),), "No table.")
    if name == "invalid_arguments":
        return ((Call("weather", {"town": 7}),), (weather("Oslo"),), "Cold.")
    if name == "unknown_tool":
        return ((Call("launch_rocket", {"pad": "39A"}),), (weather("Oslo"),), "No rocket.")
    if name == "cut_short":
        return ((weather("Oslo"),), (send,), "Sent.")
    if name == "handoff" and special.handoff is not None:
        return ((special.handoff,), (weather("Oslo"),), "Cold.")
    if name == "sub_agent" and special.sub_agent is not None:
        return ((special.sub_agent,), (weather("Oslo"),), "Cold.", "It is cold.")
    if name == "output_tool" and special.output is not None:
        return ((weather("Oslo"),), (special.output,))
    return None


SCENARIOS = (
    "in_order",
    "parallel",
    "twice",
    "raises",
    "invalid_arguments",
    "unknown_tool",
    "handoff",
    "sub_agent",
    "output_tool",
    "cut_short",
)


def play(run: Callable[[Scenario, str], object], special: Special | None = None) -> None:
    """Make the run that the command line names: `run` gets it and the address of the model's API."""
    special = Special() if special is None else special
    if sys.argv[1:] == ["--list"]:
        print("\n".join(name for name in SCENARIOS if turns_of(name, special) is not None))
        return
    name = sys.argv[1]
    turns = turns_of(name, special)
    if turns is None:
        raise SystemExit(f"there is no scenario {name!r} here; --list shows those that there are")
    ended: dict[str, object] = {"turns": [_told(turn) for turn in turns]}
    # Written before, too: in one scenario this process is killed in the middle.
    Path("ended.json").write_text(json.dumps({**ended, "ended": "killed"}), encoding="utf-8")
    with ScriptedModel(turns) as model:
        ended["started_ns"] = time.time_ns()
        try:
            ended["answer"] = str(run(Scenario(name, turns), model.url))
            ended["ended"] = "answered"
        except Exception as error:  # noqa: BLE001 - how the framework ends such a run is part of the truth
            ended["ended"] = f"raised {type(error).__name__}"
            ended["error"] = str(error)[:500]
        ended["ended_ns"] = time.time_ns()
        ended["requests"] = model.requests
    Path("ended.json").write_text(json.dumps(ended), encoding="utf-8")


def _told(turn: Turn) -> object:
    if isinstance(turn, str):
        return turn
    return [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in turn]
