"""What is alike in every call of a server that speaks OpenAI's protocol."""

from typing import Protocol

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


def client(settings: Endpoint) -> openai.OpenAI:
    """A client that never tries again by itself."""
    key = settings.api_key.get_secret_value() if settings.api_key else "none"
    return openai.OpenAI(
        base_url=settings.base_url,
        api_key=key,  # never left out: the client would take one from the environment
        timeout=settings.timeout_seconds,
        max_retries=0,
    )


def translated(
    error: openai.APIError,
    settings: Endpoint,
    *,
    what: str,
    section: str,
    down: type[TransientError],
) -> CallslipError:
    """The error for a call that failed; `down` where it may succeed later.

    Raise it `from None`: what the server says may quote the text.
    """
    if not isinstance(error, openai.APIStatusError):
        return down(f"the {what} at {settings.base_url} does not answer")
    return refused(
        error.status_code, error.code, settings.base_url, what=what, section=section, down=down
    )
