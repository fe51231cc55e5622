"""Makes equal parts of runs one object while a record is read: repetitions mostly write the same and cost as little."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

from grader.core.captured import Captured

_MOST_SHARED = 1024


class SharedParts:
    """Replaces commands and short outputs in the plain form of runs by what they stand for, each made once."""

    def __init__(self) -> None:
        self._captured: dict[str, Captured] = {}
        self._bytes: dict[str, bytes] = {}
        self._last_command: tuple[list[object], tuple[object, ...]] = ([], ())

    def put_into(self, document: object) -> None:
        """Replace what can be replaced in the body of a `run` line; anything unexpected stays, to be refused later."""
        outcome = _mapping(document).get("outcome")
        if not isinstance(outcome, dict):
            return
        entries = cast("dict[str, object]", outcome)
        command = entries.get("command")
        if isinstance(command, list):
            entries["command"] = self._command(cast("list[object]", command))
        for name in ("stdout", "stderr"):
            stream = _mapping(entries.get(name))
            captured = _mapping(stream.get("captured"))
            text = captured.get("text")
            if isinstance(text, str) and len(captured) == 1:
                stream["captured"] = self._output(text) or captured

    def _command(self, command: list[object]) -> tuple[object, ...]:
        """Repetitions stand beside each other and have one command."""
        if self._last_command[0] != command:
            self._last_command = (command, tuple([self._part(part) for part in command]))
        return self._last_command[1]

    def _part(self, part: object) -> object:
        if not isinstance(part, str):
            return part
        known = self._bytes.get(part)
        if known is None:
            known = _encoded(part)
            if known is None:
                return part
            if len(self._bytes) >= _MOST_SHARED:
                self._bytes.clear()
            self._bytes[part] = known
        return known

    def _output(self, text: str) -> Captured | None:
        known = self._captured.get(text)
        if known is None:
            data = _encoded(text)
            if data is None:
                return None
            if len(self._captured) >= _MOST_SHARED:
                self._captured.clear()
            known = self._captured[text] = Captured.whole(data)
        return known


@contextmanager
def without_garbage_collection() -> Generator[None]:
    """Reading makes very many objects of which none is garbage; looking for cycles among them takes a third of it.

    Nor are they looked through right afterwards: they count as old ones then, which a full collection looks at.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_freeze_count() == 0:  # else somebody has frozen objects, and means them to stay frozen
            gc.freeze()
            gc.unfreeze()
        gc.enable()


def _mapping(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _encoded(text: str) -> bytes | None:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None
