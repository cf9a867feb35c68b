"""Who may talk to a desk on loopback: not any web page that the same browser has open.

A page elsewhere can send forms to 127.0.0.1 and, by rebinding a name, read the answers. So a
request with an `Origin` must come from the desk's own pages, and a desk on loopback must be called
by a loopback name.
"""

from urllib.parse import urlsplit

from flask import Flask, Response, request

from api.problems import problem
from callslip.errors import InvalidRequest
from config import get_settings
from config.settings import LOOPBACK


def guard(app: Flask) -> None:
    """Refuse requests of foreign pages with 403."""

    @app.before_request
    def _check() -> Response | None:
        host = urlsplit(f"//{request.host}").hostname
        if get_settings().api.host in LOOPBACK and host not in LOOPBACK:
            called = repr(host) if host else "by no name that there can be"
            return _refuse(f"the desk listens on loopback and was called {called}")
        origin = request.headers.get("Origin")
        if origin is not None and _place(origin) != request.host:
            return _refuse("a web page of another origin sent this request")
        return None


def _place(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _refuse(detail: str) -> Response:
    hint = "Call the desk from its own page, or from a program that sends no Origin header."
    return problem(InvalidRequest(detail, hint=hint), status=403)
