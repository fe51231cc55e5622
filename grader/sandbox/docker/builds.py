"""Building one image: what is asked for, its context, and a build that another thread can stop.

A build that fails or is stopped takes back what it made: the nameless images of the steps that it had done.
"""

from __future__ import annotations

import io
import json
import tarfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from grader.core.reasons import ReasonCode
from grader.errors import SandboxError
from grader.sandbox.docker.docker_py import begun_build, why_not_removed
from grader.sandbox.docker.engine_facts import BuildLog, code_of

REMOVED_WITHIN_S = 10.0
"""For the images of a build that failed."""

Progress = Callable[[str], None]
"""Gets plain lines for people."""


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What to build: a tar archive with a Dockerfile, the values of its ARGs, and what the image is called."""

    context: bytes
    tag: str
    labels: Mapping[str, str]
    build_args: Mapping[str, str] = field(default_factory=dict[str, str])


def context_archive(files: Mapping[str, bytes], executable: Iterable[str] = ()) -> bytes:
    """A build context: the same bytes for the same files, so that the engine's cache knows it again."""
    modes = set(executable)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(files[name])
            entry.mode = 0o755 if name in modes else 0o644
            archive.addfile(entry, io.BytesIO(files[name]))
    return buffer.getvalue()


class Build:
    """One build, in a thread; `stop` ends it from another, and then it removes what it made."""

    def __init__(self, request: BuildRequest, progress: Progress, within_s: float) -> None:
        self._request = request
        self._progress = progress
        self._within_s = within_s
        self._is_stopped = False
        self._answers: Any = None

    def run(self, client: Any) -> str:
        """Build; the image's id."""
        log = BuildLog()
        try:
            self._answers = begun_build(client, self._request.context, _parameters(self._request), self._within_s)
            if self._is_stopped:  # before there was anything to hang up
                self.stop()
            for answer in self._answers:
                for line in log.take(answer):
                    self._progress(line)
            return self._result(log)
        except BaseException:
            self.stop()
            _remove_steps(client, log.steps)
            raise

    def stop(self) -> None:
        """Hang up, which makes the engine give the build up. Nothing happens if it has ended."""
        self._is_stopped = True
        if self._answers is not None:
            with suppress(Exception):  # it is closed by the engine, or by us; both are the end
                self._answers.close()

    def _result(self, log: BuildLog) -> str:
        if log.image_id is not None and log.failure is None:
            return log.image_id
        if self._is_stopped:
            raise SandboxError("the build was interrupted", code=ReasonCode.INTERRUPTED)
        if log.failure is not None:
            code = code_of(log.failure) or ReasonCode.IMAGE_MISSING
            raise SandboxError(f"the image {self._request.tag} could not be built:\n{log.failure}", code=code)
        raise SandboxError(f"the build of {self._request.tag} ended without an image", code=ReasonCode.IMAGE_MISSING)


def _remove_steps(client: Any, steps: list[str]) -> None:
    """Remove the nameless images of a build that failed, the last first. One that others use stays. Bounded.

    The container of the step that was interrupted goes a moment after we hung up; until then its image cannot.
    """
    end_s = time.monotonic() + REMOVED_WITHIN_S
    for step in reversed(steps):
        while (why := why_not_removed(client, step)) is not None:
            if "container" not in why or time.monotonic() > end_s:
                return
            time.sleep(0.1)


def _parameters(request: BuildRequest) -> dict[str, object]:
    """What the engine's API is asked for; the containers of all steps are removed again."""
    return {
        "t": request.tag,
        "rm": True,
        "forcerm": True,
        "buildargs": json.dumps(dict(request.build_args)),
        "labels": json.dumps(dict(request.labels)),
    }
