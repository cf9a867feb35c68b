"""Answers every error as application/problem+json (RFC 9457), never with a traceback."""

import json
import logging
import re
from typing import Any

from flask import Flask, Response, make_response, request
from gunicorn.http.errors import ParseException
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge

from callslip.api.http.admission import MOST_JSON, SMALL_JSON
from callslip.api.http.context import current
from callslip.config.settings import MEGABYTE
from callslip.errors import (
    CallslipError,
    DiskFull,
    FileTooLarge,
    InternalError,
    InvalidRequest,
)
from callslip.problems import MOST_ERRORS, PREFIX, of_count
from callslip.stores.disk import NO_ROOM, is_disk_full
from callslip.stores.schemas import NAME
from callslip.vocabulary import THREAD

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

NOT_JSON = "is not a JSON object sent as application/json"

LONGEST_PART = 100
"""Characters of a name of the client's that the path of a field repeats."""

_ALTERNATIVE = re.compile(r"constrained-\w+|[\w-]+\[.*\]|int|str|float|bool", re.DOTALL)
"""What pydantic adds to the path of a field for each alternative of its type."""


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
    if (count := error.error_count()) > MOST_ERRORS:
        return problem(of_count(count))
    errors = [
        {"field": _field(e["loc"]), "message": message_of(e)}
        for e in error.errors(include_input=False, include_url=False)
    ]
    detail = "; ".join(f"{e['field']}: {e['message']}" for e in errors[:3])
    return problem(InvalidRequest(detail), errors=errors)


def _field(loc: tuple[int | str, ...]) -> str:
    """The path of a field, without what pydantic adds for the alternatives of a type."""
    path = loc[:-2] if loc[-1:] == ("[key]",) else loc
    parts = [str(part)[:LONGEST_PART] for part in path]
    fields = [p for number, p in enumerate(parts) if not number or not _ALTERNATIVE.fullmatch(p)]
    return ".".join(fields) or "body"


def message_of(error: ErrorDetails) -> str:
    """What pydantic or a check of our own says about a field, or about the whole body."""
    if not error["loc"] and error["type"] != "value_error":
        return NOT_JSON
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "string_unicode":
        message = "is not valid Unicode"
    elif error["type"] == "string_pattern_mismatch":
        message = _form(error["ctx"]["pattern"])
    elif error["type"] == "string_too_short" and error["ctx"]["min_length"] == 1:
        message = "is empty"
    elif error["type"] == "extra_forbidden":
        message = "is not known"
    return f"a name in it: {message}" if error["loc"][-1:] == ("[key]",) else message


def _form(pattern: str) -> str:
    """What is wrong with a text that does not match a pattern."""
    if NAME in pattern:
        allowed = "letters, digits, `.`, `_` and `-`, with a letter or digit at each end"
        return f"is no name: at most 64 {allowed}"
    if pattern == THREAD:
        return "is no name: at most 64 Latin letters, digits, `.`, `_` and `-`, no `.` first"
    if r"[^\x00]" in pattern:
        return "has the control character U+0000"
    return "does not have the form that GET /openapi.json gives"


def is_for_browser() -> bool:
    """Whether a browser asks for a page, so that it does not get an error as JSON."""
    return request.method == "GET" and accepts_html()


def accepts_html() -> bool:
    """Whether the response is shown as a page: that to an address, a link or a form of a page."""
    return "text/html" in (media for media, _ in request.accept_mimetypes)


def of_http(error: HTTPException) -> Response:
    """The response for an error of HTTP itself, such as an unknown path."""
    if error.response is not None and error.response.content_type == MEDIA_TYPE:
        return make_response(error.response)
    detail = error.description or error.name
    if detail == NotFound.description:  # which is about what a reader types into a browser
        detail = f"the API has no path {request.path[:LONGEST_PART]}"
    known = InvalidRequest(detail, hint="GET /openapi.json has the API.")
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
        if request.is_json and request.endpoint in SMALL_JSON:
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
