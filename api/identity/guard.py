"""Checks each request: who calls, what the caller may do, and what it may see; records the use."""

import time
from collections.abc import Callable

from flask import (
    Flask,
    Request,
    Response,
    g,
    make_response,
    redirect,
    render_template,
    request,
    url_for,
)

from callslip.api.http import admission
from callslip.api.http.context import context_of, current, set_reader
from callslip.api.http.problems import accepts_html, is_for_browser, problem
from callslip.api.identity import limits
from callslip.api.identity.current import is_scope_checked, known_caller, note, noted, reader_of
from callslip.api.identity.recording import Use
from callslip.api.identity.resolver import resolve
from callslip.api.identity.routes import PUBLIC, route_of
from callslip.api.identity.scopes import check_arguments
from callslip.api.identity.state import EXTENSION, Identity, identity
from callslip.callers import Caller, Permission
from callslip.errors import CallslipError, InternalError, KeyRefused, PermissionMissing
from callslip.stores.ledger import AuditEntry, Used

RECHECK_SECONDS = 5.0
"""The seconds between two checks of the key of an open stream; a key is cached as long again."""


def guard(app: Flask, *, with_ledger: bool = True) -> None:
    """Refuse the requests that their callers may not send, and record the others.

    Without `with_ledger` only `api.key` is checked, and nothing is recorded.
    """
    app.extensions[EXTENSION] = Identity(context_of(app), with_ledger=with_ledger)
    app.config[admission.PUBLIC] = PUBLIC
    app.jinja_env.globals["may"] = _may
    app.before_request(_check)
    app.after_request(_record)


def _may(permission: Permission) -> bool:
    """Whether the caller has the permission: pages offer nothing that would be refused."""
    return known_caller().may(permission)


def _check() -> Response | None:
    if request.endpoint in PUBLIC:
        return None
    known = identity()
    try:
        caller = resolve(known, request)
    except KeyRefused as error:
        return _refuse(error)
    g.caller = caller
    set_reader(reader_of(caller))
    if request.endpoint is None or not known.with_ledger:
        return None  # 404 and 405, and the annotator alone
    if admission.is_first_pass():
        _check_rate(known, caller)
    route = route_of(request.endpoint)
    if route.permission is not None:
        check_permission(route.permission)
    if caller.limited:
        if route.limits == "refuses":
            raise PermissionMissing("the caller is limited to some collections or tenants")
        _check_arguments(caller)
    return None


def check_permission(permission: Permission) -> None:
    """Raise PermissionMissing unless the caller has the permission."""
    caller = known_caller()
    if not caller.may(permission):
        raise PermissionMissing(f"{caller.name!r} has no permission {permission!r}")


def _check_rate(known: Identity, caller: Caller) -> None:
    account = limits.account_of(known, caller)
    if account is not None:
        limits.check_rate(known.counters, account, time.time())


def _check_arguments(caller: Caller) -> None:
    rule = request.url_rule.rule if request.url_rule is not None else ""
    check_arguments(caller, current().ledger, rule, request.view_args or {})


def stream_check() -> Callable[[], None]:
    """A function that raises KeyRefused once the caller of the present request has no access.

    A stream calls it before each event; it looks every RECHECK_SECONDS. While the ledger or the
    issuer is away, the caller stays as it was.
    """
    caller, known, sent = known_caller(), identity(), Request(request.environ)
    next_at = time.monotonic() + RECHECK_SECONDS

    def check() -> None:
        nonlocal next_at
        if time.monotonic() < next_at:
            return
        next_at = time.monotonic() + RECHECK_SECONDS
        try:
            present = resolve(known, sent)
        except KeyRefused:
            raise
        except CallslipError:
            return
        if present != caller:
            raise KeyRefused("the stream began with other rights")

    return check


def answer_recorder() -> Callable[[str, int], None]:
    """A function that records a streamed answer, its id and its tokens, after the request."""
    caller, known, ids = known_caller(), identity(), dict(noted())
    action = f"answer {request.endpoint}"[:128]

    def record(trace_id: str, tokens: int) -> None:
        if caller.kind != "open" and known.with_ledger:
            _record_use(
                known, caller, action, 200, {**ids, "trace_id": trace_id}, Used(0, tokens=tokens)
            )

    return record


def _record_use(
    known: Identity, caller: Caller, action: str, status: int, ids: dict[str, str], used: Used
) -> None:
    at = round(time.time(), 3)
    entry = AuditEntry(at, caller.name[:256], caller.kind, action, status, ids)
    known.record(Use(entry, caller.key_id, limits.account_name(known, caller), used))


def _record(response: Response) -> Response:
    caller: Caller | None = g.get("caller")
    if caller is None or caller.kind == "open" or not identity().with_ledger:
        return response
    unchecked = (
        caller.limited
        and response.status_code < 400
        and request.endpoint is not None
        and request.method != "OPTIONS"  # it answers with the methods of the route alone
        and route_of(request.endpoint).limits == "endpoint"
        and not is_scope_checked()
    )
    if unchecked:  # a defect: what the caller may not see must not leave the server
        response.close()
        response = problem(InternalError("the endpoint did not check the caller's limits"))
    if request.endpoint != "static":
        note(**{name: str(value) for name, value in (request.view_args or {}).items()})
        action = f"{request.method} {request.endpoint or '-'}"[:128]
        used = Used(1, tokens=g.get("tokens", 0))
        _record_use(identity(), caller, action, response.status_code, noted(), used)
    return response


def _refuse(error: KeyRefused) -> Response:
    """Lead a browser to the login, which leads back; refuse others.

    A form that was sent when the session was over stays in the tab, which can send it again.
    """
    if identity().with_ledger:  # else there is no page
        if is_for_browser():
            query = request.query_string.decode("latin-1")  # which reads any bytes
            here = f"{request.path}?{query}" if query else request.path
            target = url_for("login.login", next=here if here != "/" else None)
            return redirect(target)  # type: ignore[return-value]  # werkzeug's
        if request.endpoint == "login.logout":
            return redirect(url_for("login.login"), 303)  # type: ignore[return-value]
        if accepts_html():
            return make_response(render_template("ended.html"), error.status)
    response = problem(error)
    response.headers["WWW-Authenticate"] = 'Bearer realm="Callslip"'
    return response
