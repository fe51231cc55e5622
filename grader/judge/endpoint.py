"""Where a judge is asked, and with which key. The key is shown nowhere: not in records, logs, errors or `repr`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import SplitResult, parse_qsl, urlsplit

from grader.errors import PrerequisiteError, UsageError

URL_VARIABLE = "GRADER_JUDGE_URL"
MODEL_VARIABLE = "GRADER_JUDGE_MODEL"
KEY_VARIABLE = "GRADER_JUDGE_KEY"
_PATH = "/chat/completions"
_HARMLESS_PARAMETERS = frozenset({"api-version"})
_HIDDEN = "[secret]"
_SHORTEST = 8
"""Shorter ones are placeholders such as `none`: taking them out would spoil ordinary answers."""


class Secret:
    """A text that is shown nowhere. Two secrets are never equal, and none can be pickled or formatted."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself, to be sent and nothing else."""
        return self._value

    def taken_out_of(self, text: str) -> str:
        """A text that came from elsewhere, without the secret in it."""
        return text.replace(self._value, _HIDDEN) if len(self._value) >= _SHORTEST else text

    def __repr__(self) -> str:
        return _HIDDEN

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not stored")


@dataclass(frozen=True)
class Endpoint:
    """A chat-completions URL, the model to ask for, and the key, if it needs one.

    The URL is that of the completions (`.../v1/chat/completions`), or of the API (`.../v1`). Raises UsageError for a
    URL that is none, or that has a secret in it.
    """

    url: str
    model: str
    key: Secret = field(default_factory=lambda: Secret(""), compare=False)

    def __post_init__(self) -> None:
        """Check the URL, without showing it: it may hold a password."""
        parts = _parts(self.url)
        if parts.username is not None or parts.password is not None:
            raise UsageError("the judge's URL has a user or password in it", hint=f"give the key in {KEY_VARIABLE}")
        unknown = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
        if set(unknown) - _HARMLESS_PARAMETERS:
            raise UsageError(
                "the judge's URL has parameters, which may be secret",
                hint=f"give the key in {KEY_VARIABLE}; only api-version may stand in the URL",
            )
        if not self.model.strip():
            raise UsageError("the judge's model has no name", hint=f"set {MODEL_VARIABLE}")
        if not self.key.reveal().isascii() or not self.key.reveal().isprintable():
            raise UsageError("the judge's key has characters that no key has", hint=f"check {KEY_VARIABLE}")

    @property
    def completions_url(self) -> str:
        """Where requests are sent."""
        parts = _parts(self.url)
        path = parts.path.rstrip("/")
        return parts._replace(path=path if path.endswith(_PATH) else path + _PATH, fragment="").geturl()

    @property
    def shown(self) -> str:
        """Scheme, host and path, for records."""
        return _parts(self.completions_url)._replace(query="", fragment="").geturl()


def endpoint_from_environment(
    environment: Mapping[str, str] | None = None, *, url: str | None = None, model: str | None = None
) -> Endpoint:
    """The endpoint that the environment names; `url` and `model` instead of its own.

    Raises PrerequisiteError for what is missing, UsageError for what is wrong.
    """
    found = environment if environment is not None else os.environ
    url = url if url is not None else found.get(URL_VARIABLE, "")
    model = model if model is not None else found.get(MODEL_VARIABLE, "")
    missing = [name for name, value in ((URL_VARIABLE, url), (MODEL_VARIABLE, model)) if not value.strip()]
    if missing:
        raise PrerequisiteError(
            f"there is no judge: {' and '.join(missing)} not set",
            hint=f"set {URL_VARIABLE} to a chat-completions URL, {MODEL_VARIABLE} to a model, {KEY_VARIABLE} to a key",
        )
    return Endpoint(url.strip(), model.strip(), Secret(found.get(KEY_VARIABLE, "").strip()))


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise UsageError("the judge's URL is none", hint=f"set {URL_VARIABLE} to http://HOST/v1") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError("the judge's URL is none", hint=f"set {URL_VARIABLE} to http://HOST/v1 or https://HOST/v1")
    return parts
