"""Protects the server from web pages of other origins in the browsers of its users.

A foreign page can send forms to the server and, by DNS rebinding, read the responses. So a request
must call the server by one of its names, a request with an `Origin` must come from the server's own
pages, and so must each request that a browser marks (`Sec-Fetch-Site`), unless it only reads.
"""

from functools import cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from flask import Flask, Response, request

from callslip.api.http.context import current
from callslip.api.http.problems import problem
from callslip.config.settings import LOOPBACK, Settings
from callslip.errors import InvalidRequest

READING = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing. A GET that spends something asks `is_same_origin`."""


def guard(app: Flask) -> None:
    """Refuse requests by other names and of foreign pages with 403."""

    @app.before_request
    def _check() -> Response | None:
        host = urlsplit(f"//{request.host}").hostname
        if host is None or not _is_called(host, current().settings):
            called = repr(host) if host else "no name that there can be"
            return _refuse(
                f"the server was called by {called}, which is none of its names",
                hint="Call it by its address, or add the name to api.hosts in the settings.",
            )
        origin = request.headers.get("Origin")
        if origin is not None and _netloc(origin) != request.host:
            return _refuse("a web page of another origin sent this request")
        site = request.headers.get("Sec-Fetch-Site", "same-origin")
        if site in ("cross-site", "same-site") and request.method not in READING:
            return _refuse("a web page of another site sent this request")
        return None


def is_same_origin() -> bool:
    """Whether a page of this server certainly sent the current request.

    Browsers send `Sec-Fetch-Site` over TLS and to loopback only; elsewhere `Referer` proves it.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site == "same-origin"
    referer = request.headers.get("Referer")
    return referer is not None and _netloc(referer) == request.host


def searches_cost() -> bool:
    """Whether a search calls a model of another server, which may count tokens."""
    settings = current().settings
    embedders = (settings.embedder, settings.previous_embedder, *settings.embedders.values())
    return settings.rerank.provider == "api" or any(each.kind == "openai" for each in embedders)


def _is_called(host: str, settings: Settings) -> bool:
    """Whether it is a name of the server. No other site can have an address for its name."""
    if host in names(settings):
        return True
    if settings.api.host in LOOPBACK:
        return False
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def names(settings: Settings) -> frozenset[str]:
    """The names of the server: of loopback, of the settings, and of the address for clients."""
    api = settings.api
    return _names(api.hosts or "", api.host, api.url or "")


@cache
def _names(hosts: str, host: str, url: str) -> frozenset[str]:
    named = {name.strip().lower() for name in hosts.split(",")} | {host.lower()}
    return (LOOPBACK | named | {urlsplit(url).hostname or ""}) - {""}


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _refuse(
    detail: str,
    hint: str = "Call the server from its own page, or from a program that sends no Origin header.",
) -> Response:
    return problem(InvalidRequest(detail, hint=hint), status=403)
