"""The only import of docker-py, and all that needs its own types: making a client, its streams, builds and errors.

Its calls block; `engine.py` runs them in threads and bounds them. What it raises becomes an error of ours here.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from typing import Any

import docker
import docker.errors
import docker.types
import docker.utils
import requests.exceptions

from grader.core.reasons import ReasonCode
from grader.errors import SandboxError
from grader.sandbox.docker.engine_facts import code_of


class NoSuchContainerError(SandboxError):
    """The container is gone."""


def connected_client(address: str, ping_within_s: float, answer_within_s: float) -> Any:
    """A client whose engine has answered. Raises what docker-py does, OSError or ValueError (`is_no_engine`)."""
    if address.startswith("unix://"):
        # Asked first by ourselves: docker-py leaves its socket open where nothing listens, and its error is a riddle.
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(ping_within_s)
            probe.connect(address.removeprefix("unix://"))
    environment = docker.utils.kwargs_from_env()
    environment["base_url"] = address
    client = docker.APIClient(version="auto", timeout=int(answer_within_s), **environment)
    client.ping()
    return client


def is_no_engine(error: BaseException) -> bool:
    """Whether an error of `connected_client` says that no engine answers at the address, and is no bug of ours."""
    return isinstance(error, (docker.errors.DockerException, OSError, ValueError))


def own_stream(attached: Any) -> Any:
    """A socket of our own where docker-py gives a file around one: its file closes the socket when it is collected."""
    inner = getattr(attached, "_sock", None)
    if type(inner) is socket.socket:
        own = inner.dup()
        # Both of docker-py's: a descriptor that stayed open would keep the box alive when ours is closed.
        attached.close()
        inner.close()
        inner.close()
        return own
    return attached


def unless_conflict(call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Call it; a conflict (not running, removal in progress, image in use) means that there is nothing to do."""
    try:
        call(*arguments, **options)
    except docker.errors.APIError as error:
        if error.status_code != 409:
            raise


def begun_build(client: Any, context: bytes, parameters: Mapping[str, object], within_s: float) -> Any:
    """The answers of a build that has begun: as docker-py's own `build`, but another thread can close them."""
    headers = {"Content-Type": "application/x-tar"}
    client._set_auth_headers(headers)
    response = client._post(
        client._url("/build"), data=context, params=dict(parameters), headers=headers, stream=True,
        timeout=int(within_s),
    )  # fmt: skip
    return docker.types.CancellableStream(client._stream_helper(response, decode=True), response)


def why_not_removed(client: Any, step: str) -> str | None:
    """Remove a nameless image; why it could not be removed, None if it is gone."""
    try:
        if client.inspect_image(step).get("RepoTags"):
            return "it has a name"
        client.remove_image(step, noprune=True)
    except docker.errors.NotFound:
        return None
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        return str(error)
    return None


def reason(error: BaseException) -> str:
    """The innermost cause, in its own words."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    inner: BaseException = error
    explained = getattr(inner, "explanation", None)  # of docker-py's errors: what the engine itself said
    while inner.args and isinstance(inner.args[-1], BaseException):
        inner = inner.args[-1]
        explained = explained or getattr(inner, "explanation", None)
    said = str(explained or getattr(inner, "strerror", None) or inner)
    system = re.search(r"\[Errno \d+\] ([^\"')]+)", said)  # inside the names of half a dozen wrappers
    return (system[1] if system is not None else said).strip() or type(error).__name__


def translated(error: Exception, doing: str) -> SandboxError | None:
    """Our error for what docker-py raised; None if it is none of its own."""
    said = f"the engine did not {doing}: {reason(error)}"
    if isinstance(error, docker.errors.ImageNotFound):
        return SandboxError(said, code=ReasonCode.IMAGE_MISSING)
    if isinstance(error, docker.errors.NotFound):
        return NoSuchContainerError(said) if "image" not in doing else SandboxError(said, code=ReasonCode.IMAGE_MISSING)
    if isinstance(error, docker.errors.APIError):
        return SandboxError(said, code=code_of(said) or ReasonCode.BOX_LOST)
    if isinstance(error, requests.exceptions.RequestException | docker.errors.DockerException | OSError):
        return SandboxError(said, code=ReasonCode.ENGINE_UNREACHABLE)
    return None
