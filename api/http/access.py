"""Logs, counts and traces every request, refused ones too."""

import logging
import re
import time
from contextlib import ExitStack
from typing import Any

from flask import Flask, Response, g, request

from callslip import logs, trace_context
from callslip.api.http.admission import HEADERS_ONLY
from callslip.api.http.context import EXTENSION, context_of, current
from callslip.api.http.problems import MEDIA_TYPE
from callslip.problems import PREFIX
from callslip.tasks.shared.metering import ERRORS, REQUEST_TIME, REQUESTS, named

log = logging.getLogger(__name__)

IDS = frozenset(
    (
        *("document_id", "batch_id", "webhook_id", "delivery_id", "task_id"),
        *("trace_id", "feedback_id"),
    )
)
"""Parts of a path that are ids of Callslip's, in contrast to names that callers chose."""

_ID = re.compile(r"[0-9A-Za-z_.@-]{1,64}")
"""The form of every id; another text in its place is not logged, as nobody has checked it."""

PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
"""Routes whose requests are logged at DEBUG, because they repeat every few seconds."""

UNKNOWN = "unknown"
"""The route of a path that the server does not have."""


def record(app: Flask) -> None:
    """Let the app record its requests. Call it before other functions of a request are added."""

    @app.before_request
    def _begin() -> None:
        g.began, g.ids = time.perf_counter(), {}
        g.during = ExitStack()
        header = trace_context.valid(request.headers.get(trace_context.HEADER))
        spans = current().spans
        g.during.enter_context(trace_context.within(header or trace_context.new()))
        if spans is not None and _route() not in PROBES and HEADERS_ONLY not in request.environ:
            if header is None:
                g.during.enter_context(trace_context.within(None))
            attributes = {"http.request.method": request.method, "http.route": _route()}
            span = spans.span(f"{request.method} {_route()}", attributes, "SERVER")
            g.during.enter_context(span)

    @app.after_request
    def _answered(response: Response) -> Response:
        spans, context = current().spans, current()
        if spans is not None:
            spans.annotate({"http.response.status_code": response.status_code})
        fields = _fields(response)
        traceparent, began = trace_context.current(), g.get("began", time.perf_counter())

        def sent() -> None:
            seconds = time.perf_counter() - began
            meter, route = context.meter, fields["route"]
            meter.add(named(REQUESTS, route, fields["method"], str(fields["status"])))
            meter.took(named(REQUEST_TIME, route), seconds)
            if reason := fields["reason"]:
                meter.add(named(ERRORS, "request", reason))
            with trace_context.within(traceparent):
                milliseconds = logs.milliseconds(seconds)
                logs.event(log, "request", _level(fields), **fields, ms=milliseconds)

        response.call_on_close(sent)
        return response

    @app.teardown_request
    def _end(_: BaseException | None) -> None:
        during = g.pop("during", None)
        if during is not None:
            during.close()


def refused_unseen(app: Flask, response: Response) -> None:
    """Count and log a response to a request that was refused before the app received it."""
    body = response.get_json(force=True, silent=True) or {}
    reason = str(body.get("type", "")).removeprefix(PREFIX)
    fields: dict[str, Any] = {"method": "any", "route": UNKNOWN, "status": response.status_code}
    fields["reason"] = reason
    if EXTENSION in app.extensions:
        meter = context_of(app).meter
        meter.add(named(REQUESTS, UNKNOWN, "any", str(response.status_code)))
        meter.add(named(ERRORS, "request", reason))
    logs.event(log, "request", _level(fields), **fields)


def note(**ids: str | int) -> None:
    """Add ids to the log line of the present request."""
    g.ids.update(ids)


def _fields(response: Response) -> dict[str, Any]:
    reason = None
    if response.content_type == MEDIA_TYPE:
        problem = response.get_json(force=True, silent=True) or {}
        reason = str(problem.get("type", "")).removeprefix(PREFIX)
    path = request.view_args or {}
    return {
        "method": request.method if request.url_rule else "any",
        "route": _route(),
        "status": response.status_code,
        "reason": reason,
        "bytes_in": request.content_length,
        "bytes_out": response.content_length,
        **{name: value for name, value in path.items() if name in IDS and _ID.fullmatch(value)},
        **g.get("ids", {}),
    }


def _route() -> str:
    return request.url_rule.rule if request.url_rule else UNKNOWN


def _level(fields: dict[str, Any]) -> int:
    if fields["route"] in PROBES:
        return logging.DEBUG
    return logging.WARNING if fields["status"] >= 500 else logging.INFO
