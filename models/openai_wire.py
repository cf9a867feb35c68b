"""What is alike in every call of a server that speaks OpenAI's protocol."""

from typing import Any, Protocol

import httpx
import openai
from pydantic import SecretStr

from callslip.errors import CallslipError, TransientError
from models.refusals import refused


class Endpoint(Protocol):
    """The settings of such a server."""

    @property
    def base_url(self) -> str | None: ...
    @property
    def api_key(self) -> SecretStr | None: ...
    @property
    def timeout_seconds(self) -> float: ...


def client(settings: Endpoint, http: httpx.Client | None = None) -> openai.OpenAI:
    """A client that never tries again by itself, over `http` or what it makes itself."""
    key = settings.api_key.get_secret_value() if settings.api_key else "none"
    over: Any = http  # typed as httpx2's since openai 3, which takes httpx's as well
    base = httpx.URL(settings.base_url or "")
    return openai.OpenAI(
        base_url=str(base.copy_with(query=None)),
        default_query=dict(base.params),
        api_key=key,  # never left out: the client would take one from the environment
        timeout=settings.timeout_seconds,
        max_retries=0,
        http_client=over,
    )


def address(settings: Endpoint) -> str:
    """`base_url` without what is secret in it."""
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
    """The error for a call of so many seconds that failed; `down` where it may succeed later.

    Raise it `from None`: what the server says may quote the text.
    """
    at = address(settings)
    if isinstance(error, openai.APITimeoutError):
        waited = settings.timeout_seconds if seconds is None else seconds
        return down(f"the {what} at {at} did not answer in {waited:g} s")
    if not isinstance(error, openai.APIStatusError):
        return down(f"the {what} at {at} does not answer: {type(error.__cause__).__name__}")
    return refused(error.status_code, error.code, at, what=what, section=section, down=down)
