"""Refuses requests by their headers alone, before a server receives large bodies."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from flask import Flask, Response, request
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from callslip.api.http.context import EXTENSION, context_of
from callslip.config.settings import MEGABYTE

PUBLIC = "CALLSLIP_PUBLIC"
"""The configuration of an app with the endpoints that need no key."""

LARGEST_PUBLIC = 65_536
"""Bytes of the largest body of a request that needs no key."""

MOST_JSON = 2 * MEGABYTE
"""Bytes of the largest JSON of a request for an endpoint of SMALL_JSON."""

SMALL_JSON = frozenset(
    (
        *("answers.answer_question", "attachments.attach_table", "batches.create_batch"),
        *("collections.create_tenant", "facets.count_by_property", "facets.rebuild_facets"),
        *("failures.retry", "faq.compare_collections", "feedback.give_feedback"),
        *("memory.reset_memory", "ranking.decide_proposal", "searches.search"),
        *("versions.cut", "versions.preview_cut", "versions.roll_back", "webhooks.create_webhook"),
    )
)
"""Endpoints whose JSON has neither texts of documents nor lists of them. Others, also those of
other packages, take as much as an upload."""

HEADERS_ONLY = "callslip.headers_only"
"""True in the environ of a request whose body has not arrived. If the request is not refused, the
app gets it once more, with its body, within `checked`: requests are counted by `is_first_pass`."""

_is_checked: ContextVar[bool] = ContextVar("is_checked", default=False)


@contextmanager
def checked(is_checked: bool) -> Iterator[None]:
    """Run the block, which passes a request to the app: `refusal` checked it if `is_checked`."""
    token = _is_checked.set(is_checked)
    try:
        yield
    finally:
        _is_checked.reset(token)


def is_first_pass() -> bool:
    """Whether the app gets the present request for the first time."""
    return not _is_checked.get()


def guard(app: Flask) -> None:
    """Let the app refuse large JSON where none is sent, and bodies in a content coding."""

    @app.before_request
    def _limit() -> None:
        coding = request.headers.get("Content-Encoding", "").strip().lower()
        has_body = request.content_length or "Transfer-Encoding" in request.headers
        if has_body and coding not in ("", "identity"):
            raise UnsupportedMediaType("the body has a Content-Encoding: send it as it is")
        if request.is_json and request.endpoint in SMALL_JSON:
            request.max_content_length = MOST_JSON


UPLOAD_SHARE = 0.2
"""The most of the machine's processors that uploads take while documents wait. Their whole time
counts, waiting too: so it fits a machine that others use, and a container with a limit."""

LONGEST_PAUSE = 1.0
"""Seconds."""


def pause(app: Flask, busy: float, threads: int) -> float:
    """Seconds for which a thread pauses after an upload that took `busy` seconds.

    `threads` is the number of threads that do so. None pauses while few documents wait.
    """
    if EXTENSION not in app.extensions or not context_of(app).backlog.is_long:
        return 0.0
    share = UPLOAD_SHARE * (os.cpu_count() or 1) / threads
    return min(LONGEST_PAUSE, max(0.0, busy / share - busy))


def refusal(app: Flask, environ: dict[str, Any]) -> Response | None:
    """The response to a request that is refused whatever its body is, or None.

    The app's checks run (origin, key), then its routes, methods and the size of the body.
    """
    with app.request_context(environ | {HEADERS_ONLY: True}):
        try:
            rv = app.preprocess_request()
            if rv is None:
                if request.routing_exception:
                    raise request.routing_exception
                is_public = request.endpoint in app.config.get(PUBLIC, ())
                largest = LARGEST_PUBLIC if is_public else request.max_content_length or 0
                if (request.content_length or 0) <= largest:
                    return None
                raise RequestEntityTooLarge
        except Exception as error:  # the app's handlers decide, as in a whole request
            rv = app.handle_user_exception(error)
        return app.finalize_request(rv)
