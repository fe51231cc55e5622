"""Functions for scripts: an asynchronous one, run to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

T = TypeVar("T")


def run_blocking(main: Callable[[], Awaitable[T]], *, instead: str) -> T:
    """Run it in a loop of its own. Raises RuntimeError, which names what to await instead, inside a running one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return anyio.run(main)
    raise RuntimeError(f"an event loop is running here, as in a notebook: await {instead}(...) instead")
