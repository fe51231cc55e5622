"""Makes what was written durable about once a second, beside the writer and not in its way."""

from __future__ import annotations

import threading
from collections.abc import Callable

_JOIN_TIMEOUT_S = 30.0


class Syncer:
    """Calls `sync` at most once per `interval_s`, in a thread of its own, whenever something was written since.

    What a power failure can take is so bounded by the interval (and the time that one `sync` needs), also when nothing
    more is written for hours. The thread begins with the first note and ends with `close`.
    """

    def __init__(self, sync: Callable[[], None], interval_s: float = 1.0) -> None:
        self._sync = sync
        self._interval_s = interval_s
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: OSError | None = None

    def check(self) -> None:
        """Raises OSError if syncing has failed: what was written since may not be safe, and more would not be."""
        if self._error is not None:
            raise self._error

    def note(self) -> None:
        """Something was written."""
        if not self._wake.is_set():
            self._wake.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="grader-record-sync", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """End the thread. It does not sync once more."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_JOIN_TIMEOUT_S)

    def _run(self) -> None:
        while True:
            self._wake.wait()
            if self._closing.wait(self._interval_s):
                return
            self._wake.clear()
            try:
                self._sync()
            except OSError as error:
                self._error = error
                return
