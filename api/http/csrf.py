"""The token of the server's pages: a cookie, and the same value in a header of each request.

A page of another origin can read neither, so it cannot send the header. Programs have no cookie,
and need no token.
"""

import re
import secrets

from flask import Flask, Response, current_app, g, request

from callslip.api.http.admission import HEADERS_ONLY
from callslip.api.http.origins import READING
from callslip.api.http.problems import accepts_html, problem
from callslip.errors import InvalidRequest

COOKIE, HEADER, FIELD = "callslip_csrf", "X-CSRF-Token", "csrf_token"

FORM = "application/x-www-form-urlencoded"

PAGES = "/page/"
"""Paths that only the pages call: their requests need a token in any case."""


def guard(app: Flask) -> None:
    """Refuse changes that a browser sends without the token with 403; define `csrf_token()`."""
    app.jinja_env.globals["csrf_token"] = _token

    @app.before_request
    def _check() -> Response | None:
        if request.method in READING or _waits_for_form():
            return None
        cookie = request.cookies.get(COOKIE)
        if cookie is None and not request.path.startswith(PAGES):
            return None
        if cookie and secrets.compare_digest(cookie.encode(), _sent().encode()):
            return None
        is_page = accepts_html() and "pages" in current_app.blueprints
        return problem(_outdated_form() if is_page else _wrong_header(), status=403)

    @app.after_request
    def _set_cookie(response: Response) -> Response:
        if token := g.pop("new_csrf_token", None):
            response.set_cookie(
                COOKIE, token, httponly=True, samesite="Lax", secure=request.is_secure
            )
        return response


def _wrong_header() -> InvalidRequest:
    return InvalidRequest(
        f"the header {HEADER} is not the cookie {COOKIE}",
        hint="Load the page again. A program that sends cookies leaves this one out.",
    )


def _outdated_form() -> InvalidRequest:
    return InvalidRequest(
        "the form is of a page from before this browser removed its cookies",
        hint="Go back, copy what you typed, load the page again, and send the form from there.",
    )


def _sent() -> str:
    """The token in the header, or in a small form without scripts."""
    token = request.headers.get(HEADER)
    if token is None and request.mimetype == FORM:
        token = request.form.get(FIELD)
    return token or ""


def _waits_for_form() -> bool:
    """Whether the token may be in a form that has not arrived."""
    return request.mimetype == FORM and HEADERS_ONLY in request.environ


def _token() -> str:
    """The token of the page that is being rendered."""
    token = request.cookies.get(COOKIE, "")
    if not re.fullmatch(r"[\w-]{22}", token, re.ASCII):
        if "new_csrf_token" not in g:
            g.new_csrf_token = secrets.token_urlsafe(16)
        token = g.new_csrf_token
    return token
