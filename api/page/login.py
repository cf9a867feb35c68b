"""The login of the page: by a key, by a link that works once, or at the OpenID Connect issuer."""

import re

from flask import Blueprint, Response, g, make_response, redirect, render_template, request, url_for

from callslip.api.identity.resolver import of_key, session_of
from callslip.api.identity.sessions import STATE_COOKIE
from callslip.api.identity.state import identity
from callslip.callers import Caller
from callslip.errors import CallslipError, InvalidRequest, KeyRefused

blueprint = Blueprint("login", __name__)

_LOCAL = re.compile(r"(?![^?]*/(?:\.|%2e))/(?!/|log(?:in|out)\b)[!-\[\]-~]{0,2000}", re.IGNORECASE)
"""A path of this server with its query in ASCII, but none that changes the session.

Browsers take what follows `//` for a host, `\\` for `/`, and shorten a path with `/./` or `/../`.
"""


@blueprint.route("/login", methods=["GET", "POST"])
def login() -> Response:
    """Show the form, or log in by the form's `key` or by the link's `code`."""
    known = identity()
    if request.method == "POST":
        sent = request.form.get("key", "").strip().encode("ascii", "replace")
        caller = of_key(known, sent, request.remote_addr or "")
        return _welcome(caller, request.form.get("next"))
    if code := request.args.get("code"):
        key_id = known.ledger().secrets.spend(code)
        key = known.keys.by_id(key_id) if key_id is not None else None
        if key is None:
            raise KeyRefused("the link was used before, or is too old")
        return _welcome(key.caller)
    return _form()


@blueprint.get("/login/begin")
def begin() -> Response:
    """Lead the browser to the issuer's login."""
    known = identity()
    if known.provider is None:
        raise InvalidRequest("oidc.issuer is not set", hint="Log in with a key.")
    url, state = known.provider.begin(_redirect_uri())
    response = make_response(redirect(url))
    cookie = {**state, "next": _local(request.args.get("next"))}
    known.sessions.keep_state(response, cookie, secure=_is_secure())
    return response


@blueprint.get("/login/finish")
def finish() -> Response:
    """Accept what the issuer's login sends back."""
    known = identity()
    state = known.sessions.state(request.cookies.get(STATE_COOKIE))
    if known.provider is None or state is None or state["state"] != request.args.get("state"):
        raise KeyRefused("the login did not begin in this browser, or took too long")
    if "code" not in request.args:
        raise KeyRefused("the issuer refused the login")
    caller = known.provider.finish(request.args["code"], state, _redirect_uri())
    return _welcome(caller, state.get("next"))


@blueprint.post("/logout")
def logout() -> Response:
    """End the session."""
    response = make_response(redirect(url_for("login.login")))
    identity().sessions.end(response)
    return response


@blueprint.errorhandler(CallslipError)
def _failed(error: CallslipError) -> Response:
    return _form(error)


def _form(error: CallslipError | None = None) -> Response:
    """The page with the form; its own words say where a key is, instead of an error's advice."""
    issuer, target = identity().settings.oidc.issuer, _local(request.values.get("next"))
    shown = render_template("login.html", issuer=issuer, error=error, next=target)
    return make_response(shown, error.status if error else 200)


def _local(address: str | None) -> str:
    """The address to show after the login, if it is one of this server; else that of the page."""
    return address if address and _LOCAL.fullmatch(address) else url_for("pages.page")


def _welcome(caller: Caller, address: str | None = None) -> Response:
    """Begin a session of the caller, and show the page that led to the login."""
    g.caller = caller  # for the audit log
    known, groups = identity(), list[str]()
    if caller.kind == "oidc":
        from callslip.api.identity.oidc import groups_of_rules

        groups = groups_of_rules(known.settings.oidc, caller.groups)
    response = make_response(redirect(_local(address)))
    values = session_of(caller, groups)
    known.sessions.begin(response, values, secure=_is_secure())
    response.delete_cookie(STATE_COOKIE)
    return response


def _redirect_uri() -> str:
    base = identity().settings.api.url or request.url_root
    return f"{base.rstrip('/')}{url_for('login.finish')}"


def _is_secure() -> bool:
    """Whether browsers reach the server by HTTPS, so that the cookie needs it."""
    return (identity().settings.api.url or request.url_root).startswith("https://")
