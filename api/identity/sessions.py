"""Sessions of the page: a signed cookie, which scripts cannot read and other sites cannot send."""

import time
from collections.abc import Mapping
from typing import Any

from flask import Response
from itsdangerous import BadSignature, URLSafeTimedSerializer

COOKIE, STATE_COOKIE = "callslip_session", "callslip_login"

STATE_SECONDS = 600
"""The time that a user has to log in at the issuer."""

LARGEST = 4000
"""Characters of a cookie; browsers drop larger ones."""


class Sessions:
    """Signs values for cookies, and reads them."""

    def __init__(self, secret: str, hours: float) -> None:
        self._session = URLSafeTimedSerializer(secret, salt="session")
        self._state = URLSafeTimedSerializer(secret, salt="login")
        self._seconds = int(hours * 3600)

    def begin(self, response: Response, values: Mapping[str, Any], *, secure: bool) -> None:
        """Set the session's cookie."""
        until = int(time.time()) + self._seconds
        _set(response, COOKIE, self._session.dumps({**values, "until": until}), secure)

    def end(self, response: Response) -> None:
        """Delete the session's cookie."""
        response.delete_cookie(COOKIE, httponly=True, samesite="Lax")

    def read(self, cookie: str | None) -> dict[str, Any] | None:
        """The values of a session; None without one, or for one that is forged or has expired."""
        values = _read(self._session, cookie, self._seconds)
        return values if values is not None and values.get("until", 0) > time.time() else None

    def keep_state(self, response: Response, values: Mapping[str, str], *, secure: bool) -> None:
        """Set the cookie of a login that has begun; the issuer's page leads back with it."""
        _set(response, STATE_COOKIE, self._state.dumps(dict(values)), secure)

    def state(self, cookie: str | None) -> dict[str, Any] | None:
        """The values of a login that has begun."""
        return _read(self._state, cookie, STATE_SECONDS)


def _set(response: Response, name: str, value: str, secure: bool) -> None:
    if len(value) <= LARGEST:
        response.set_cookie(name, value, secure=secure, httponly=True, samesite="Lax")


def _read(
    serializer: URLSafeTimedSerializer, cookie: str | None, seconds: int
) -> dict[str, Any] | None:
    if not cookie or len(cookie) > LARGEST:
        return None
    try:
        values = serializer.loads(cookie, max_age=seconds)
    except BadSignature:
        return None
    return values if isinstance(values, dict) else None
