"""Answers every error as application/problem+json (RFC 9457), never with a traceback."""

import json
import logging
from typing import Any

from flask import Flask, Response, make_response, request
from gunicorn.http.errors import ParseException
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from werkzeug.exceptions import HTTPException, MethodNotAllowed, RequestEntityTooLarge

from callslip.api.http.admission import MOST_JSON
from callslip.api.http.context import current
from callslip.config.settings import MEGABYTE
from callslip.errors import (
    CallslipError,
    DiskFull,
    FileTooLarge,
    InternalError,
    InvalidRequest,
)
from callslip.problems import PREFIX
from callslip.stores.disk import NO_ROOM, is_disk_full

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

NOT_JSON = "is not a JSON object sent as application/json"


def problem(
    error: CallslipError, *, status: int | None = None, errors: list[dict[str, str]] | None = None
) -> Response:
    """The response for an error."""
    body: dict[str, Any] = described(error) | {"status": status or error.status}
    if errors:
        body["errors"] = errors
    response = Response(
        json.dumps(body, ensure_ascii=False), status or error.status, content_type=MEDIA_TYPE
    )
    if response.status_code in (429, 503, 507):
        response.headers["Retry-After"] = f"{error.retry_after:.0f}"
    return response


def described(error: CallslipError) -> dict[str, Any]:
    """The fields of the problem for an error."""
    return {
        "type": f"{PREFIX}{error.slug}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "advice": error.advice,
    }


def invalid(error: ValidationError) -> Response:
    """The response for an invalid request; names the fields, but never repeats the values."""
    errors = [
        {
            "field": ".".join(str(part) for part in e["loc"]) or "body",
            "message": _message(e),
        }
        for e in error.errors(include_input=False, include_url=False)
    ]
    detail = "; ".join(f"{e['field']}: {e['message']}" for e in errors[:3])
    return problem(InvalidRequest(detail), errors=errors)


def _message(error: ErrorDetails) -> str:
    """What pydantic or a check of our own says about a field, or about the whole body."""
    if error["loc"] or error["type"] == "value_error":
        return error["msg"].removeprefix("Value error, ")
    return NOT_JSON


def is_for_browser() -> bool:
    """Whether a browser asks for a page, so that it does not get an error as JSON."""
    accepted = (media for media, _ in request.accept_mimetypes)
    return request.method == "GET" and "text/html" in accepted


def of_http(error: HTTPException) -> Response:
    """The response for an error of HTTP itself, such as an unknown path."""
    if error.response is not None and error.response.content_type == MEDIA_TYPE:
        return make_response(error.response)
    known = InvalidRequest(error.description or error.name, hint="GET /openapi.json has the API.")
    response = problem(known, status=error.code)
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        response.headers["Allow"] = ", ".join(sorted(error.valid_methods))
    return response


def handle_problems(app: Flask) -> None:
    """Let the app answer every error as a problem."""

    @app.errorhandler(CallslipError)
    def _known(error: CallslipError) -> Response:
        return problem(error)

    @app.errorhandler(RequestEntityTooLarge)
    def _too_large(_: RequestEntityTooLarge) -> Response:
        if request.is_json and request.max_content_length == MOST_JSON:
            size = f"{MOST_JSON // MEGABYTE} MB"
            detail = f"the JSON is larger than {size}, the most for this request"
            return problem(InvalidRequest(detail), status=413)
        limit = current().settings.api.max_upload_mb
        if (request.content_length or 0) > limit * MEGABYTE:
            return problem(FileTooLarge(f"the request is larger than {limit} MB"))
        hint = "Send one file, as the part named file, and short fields beside it."
        form_error = InvalidRequest(
            "the form has too many parts, or too long a text field", hint=hint
        )
        return problem(form_error, status=413)

    @app.errorhandler(ParseException)
    def _broken_off(_: ParseException) -> Response:
        return problem(InvalidRequest("the body is not sent in sound chunks"))

    @app.errorhandler(RecursionError)
    def _too_deep(_: RecursionError) -> Response:
        return problem(InvalidRequest("the JSON is nested too deeply"))

    @app.errorhandler(HTTPException)
    def _http(error: HTTPException) -> Response:
        return of_http(error)

    @app.errorhandler(OSError)
    def _disk(error: OSError) -> Response:
        return problem(DiskFull(NO_ROOM)) if is_disk_full(error) else _unknown(error)

    @app.errorhandler(Exception)
    def _unknown(error: Exception) -> Response:
        log.exception("unexpected")
        return problem(InternalError(f"unexpected {type(error).__name__}"))
