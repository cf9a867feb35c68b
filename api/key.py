"""Where `api.key` is set, every request but those of health probes must carry it.

A program sends `Authorization: Bearer KEY`. A browser asks its user, and sends the key as the
password of HTTP Basic.
"""

from typing import Any

from flask import Flask, Response, request

from api.problems import problem
from callslip.errors import KeyRefused
from callslip.keys import basic_password, bearer, fits
from config import get_settings

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
        key = get_settings().api.key
        if key is None or request.endpoint in OPEN:
            return None
        header = request.headers.get("Authorization")
        given = bearer(header)
        if given is None:
            given = basic_password(header)
        return None if fits(given, key.get_secret_value()) else _refuse(header)


def describe(document: dict[str, Any]) -> None:
    """Add to an OpenAPI document how the key is sent, and where it is asked for."""
    document.setdefault("components", {})["securitySchemes"] = SCHEMES
    if get_settings().api.key is None:
        return
    document["security"] = [{name: []} for name in SCHEMES]
    for path in {"/healthz", "/readyz"} & document["paths"].keys():
        document["paths"][path]["get"]["security"] = []


def _refuse(header: str | None) -> Response:
    told = "the request carries no key" if header is None else "the key is not that of the desk"
    response = problem(KeyRefused(told))
    page = "text/html" in (media for media, _ in request.accept_mimetypes)
    response.headers["WWW-Authenticate"] = f'{"Basic" if page else "Bearer"} realm="Callslip"'
    return response
