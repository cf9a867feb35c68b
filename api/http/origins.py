"""Protects a server on loopback from web pages of other origins in the same browser.

A foreign page can send forms to 127.0.0.1 and, by DNS rebinding, read the responses. So a request
with an `Origin` must come from the server's own pages, and a request to a server on loopback must
use a loopback name.
"""

from urllib.parse import urlsplit

from flask import Flask, Response, request

from callslip.api.http.context import current
from callslip.api.http.problems import problem
from callslip.config.settings import LOOPBACK
from callslip.errors import InvalidRequest


def guard(app: Flask) -> None:
    """Refuse requests of foreign pages with 403."""

    @app.before_request
    def _check() -> Response | None:
        host = urlsplit(f"//{request.host}").hostname
        if current().settings.api.host in LOOPBACK and host not in LOOPBACK:
            called = repr(host) if host else "by no name that there can be"
            return _refuse(f"the server listens on loopback and was called {called}")
        origin = request.headers.get("Origin")
        if origin is not None and _netloc(origin) != request.host:
            return _refuse("a web page of another origin sent this request")
        return None


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _refuse(detail: str) -> Response:
    hint = "Call the server from its own page, or from a program that sends no Origin header."
    return problem(InvalidRequest(detail, hint=hint), status=403)
