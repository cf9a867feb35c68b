"""The client, address and errors for calls of servers with OpenAI's protocol."""

from typing import Any, Protocol

import httpx
import openai
from pydantic import SecretStr

from callslip.errors import CallslipError, TransientError
from callslip.models.http.refusals import refused


class Endpoint(Protocol):
    """The settings of a server with OpenAI's protocol."""

    @property
    def base_url(self) -> str | None: ...
    @property
    def api_key(self) -> SecretStr | None: ...
    @property
    def timeout_seconds(self) -> float: ...


def client(settings: Endpoint, http: httpx.Client | None = None) -> openai.OpenAI:
    """Return a client that never retries by itself; it uses `http`, or its own HTTP client."""
    key = settings.api_key.get_secret_value() if settings.api_key else "none"
    over: Any = http  # since openai 3 the type is httpx2's; a client of httpx works as well
    base = httpx.URL(settings.base_url or "")
    return openai.OpenAI(
        base_url=str(base.copy_with(query=None)),
        default_query=dict(base.params),
        api_key=key,  # always set: the client would otherwise read a key from the environment
        timeout=settings.timeout_seconds,
        max_retries=0,
        http_client=over,
    )


def address(settings: Endpoint) -> str:
    """Return `base_url` without its possible secrets: user name, password and query."""
    return str(httpx.URL(settings.base_url or "").copy_with(userinfo=b"", query=None))


def translated(
    error: openai.APIError,
    settings: Endpoint,
    *,
    what: str,
    section: str,
    down: type[TransientError],
    seconds: float | None = None,
) -> CallslipError:
    """Return the error for a failed call: `down` if a later call may succeed.

    `what` names the server in the message, `section` is the settings section with its address, and
    `seconds` is the call's timeout, if it differs from the settings. Raise the returned error
    `from None`, because the server's message may quote the text.
    """
    at = address(settings)
    if isinstance(error, openai.APITimeoutError):
        waited = settings.timeout_seconds if seconds is None else seconds
        return down(f"the {what} at {at} did not answer in {waited:g} s")
    if not isinstance(error, openai.APIStatusError):
        return down(f"the {what} at {at} does not answer: {type(error.__cause__).__name__}")
    return refused(error.status_code, error.code, at, what=what, section=section, down=down)
