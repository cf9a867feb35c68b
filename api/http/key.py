"""Checks the API key: if `api.key` is set, all requests except health probes must carry it.

A program sends `Authorization: Bearer KEY`. A browser asks its user, and sends the key as the
password of HTTP Basic.
"""

from typing import Any

from flask import Flask, Response, request

from callslip.api.http.context import current
from callslip.api.http.problems import problem
from callslip.config.settings import Settings
from callslip.errors import KeyRefused
from callslip.keys import basic_password, bearer, fits

OPEN = frozenset({"health.healthz", "health.readyz"})
"""Endpoints without a key, for probes."""

SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "basic": {"type": "http", "scheme": "basic", "description": "the key as password"},
}


def guard(app: Flask) -> None:
    """Refuse requests without the key with 401."""

    @app.before_request
    def _check() -> Response | None:
        key = current().settings.api.key
        if key is None or request.endpoint in OPEN:
            return None
        header = request.headers.get("Authorization")
        key_sent = bearer(header)
        if key_sent is None:
            key_sent = basic_password(header)
        return None if fits(key_sent, key.get_secret_value()) else _refuse(header)


def describe(document: dict[str, Any], settings: Settings) -> None:
    """Describe in an OpenAPI document how the key is sent, and which operations require it."""
    document.setdefault("components", {})["securitySchemes"] = SCHEMES
    if settings.api.key is None:
        return
    document["security"] = [{name: []} for name in SCHEMES]
    for path in {"/healthz", "/readyz"} & document["paths"].keys():
        document["paths"][path]["get"]["security"] = []


def _refuse(header: str | None) -> Response:
    detail = "the request carries no key" if header is None else "the key is not that of the server"
    response = problem(KeyRefused(detail))
    page = "text/html" in (media for media, _ in request.accept_mimetypes)
    response.headers["WWW-Authenticate"] = f'{"Basic" if page else "Bearer"} realm="Callslip"'
    return response
