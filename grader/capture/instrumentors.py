"""The OpenInference instrumentors that are installed: turned on for one tracer provider, and off again."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, cast

from grader.errors import UsageError

GROUP = "openinference_instrumentor"
"""The entry points under which these packages can be found."""
_INSTALL = "pip install openinference-instrumentation-openai-agents, or that of your framework"


class _BaseInstrumentor(Protocol):
    @property
    def is_instrumented_by_opentelemetry(self) -> bool: ...

    def instrument(self, **settings: object) -> object: ...

    def uninstrument(self, **settings: object) -> object: ...


@dataclass(frozen=True, slots=True)
class Instrumentor:
    """An instrumentor that was turned on here."""

    name: str
    instance: _BaseInstrumentor


def turn_on(provider: object, only: tuple[str, ...], already: tuple[Instrumentor, ...]) -> tuple[Instrumentor, ...]:
    """Turn on those named, or all; those in `already` stay as they are. All or none: what fails undoes the others.

    Raises UsageError as `LocalTraceCapture.instrument` says.
    """
    found = {point.name: point for point in entry_points(group=GROUP)}
    unknown = [name for name in only if name not in found]
    if unknown or not found:
        missing = (
            f"no instrumentor is installed for {', '.join(unknown)}" if unknown else "no instrumentor is installed"
        )
        known = f"installed are: {', '.join(sorted(found))}; " if found else ""
        raise UsageError(f"{missing}, so nothing would record what the agent does", hint=known + _INSTALL)
    turned_on: list[Instrumentor] = []
    try:
        for name in sorted(only or found):
            instrumentor = _turn_on(found[name], provider, is_named=name in only, already=already)
            if instrumentor is not None:
                turned_on.append(instrumentor)
    except UsageError:
        turn_off(turned_on)
        raise
    return tuple(turned_on)


def turn_off(instrumentors: tuple[Instrumentor, ...] | list[Instrumentor]) -> None:
    """Turn these off."""
    for one in instrumentors:
        one.instance.uninstrument()


def _turn_on(
    point: EntryPoint, provider: object, *, is_named: bool, already: tuple[Instrumentor, ...]
) -> Instrumentor | None:
    """None when its library is not here and nobody asked for it by name, or when it is on for us already."""
    try:
        instance = cast("_BaseInstrumentor", point.load()())
    except ImportError as error:
        return _passed_over(point.name, str(error), is_named=is_named)
    if any(one.instance is instance for one in already):
        return None
    if instance.is_instrumented_by_opentelemetry:
        raise UsageError(
            f"the instrumentor {point.name} was turned on before, with another tracer provider, where its spans go",
            hint="turn it off there, or call capture.instrument() first",
        )
    instance.instrument(tracer_provider=provider)
    if not instance.is_instrumented_by_opentelemetry:
        return _passed_over(point.name, "its library is not installed in a version that it knows", is_named=is_named)
    return Instrumentor(point.name, instance)


def _passed_over(name: str, why: str, *, is_named: bool) -> None:
    if is_named:
        raise UsageError(f"the instrumentor {name} cannot be turned on: {why[:200]}", hint="install the library")
