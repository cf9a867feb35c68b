"""The task that runs a search, and the function with which the API queues the task and waits."""

import logging
import time
from functools import partial
from typing import Any, NamedTuple

from celery import shared_task
from pydantic import BaseModel

from callslip import logs
from callslip.errors import CallslipError, Overloaded, PermanentError, SearchTimeout
from callslip.http.deadline import until
from callslip.ingestion.pages.areas import areas_of
from callslip.readers import Reader, as_json
from callslip.retrieval.messages import Area, SearchRequest, SearchResponse
from callslip.retrieval.query.plan import check_request
from callslip.retrieval.run import traced
from callslip.retrieval.tracing.trace import Trace
from callslip.tasks.composition import Context, current
from callslip.tasks.queues import SEARCH
from callslip.tasks.shared import replies, sending
from callslip.tasks.shared.metering import (
    ERRORS,
    SEARCH_TIME,
    SEARCHES,
    STAGE,
    TRACES_DROPPED,
    named,
)

log = logging.getLogger(__name__)

MARGIN_SECONDS = 1.0
"""Seconds after which a search whose reply did not come in time is left alone."""


@shared_task(name="search.query")
def query(
    request: dict[str, Any],
    reply_to: str,
    deadline: float,
    reader: dict[str, Any] | None = None,
) -> None:
    """Run a search, and push the response to `reply_to`, unless its caller stopped waiting.

    The hits are those that the `reader` may read; without one, the caller may read everything.
    """
    context = current()
    collection = str(request.get("collection"))
    waited = time.time() - (deadline - context.settings.search.timeout_seconds)
    wait: dict[str, Any] = {"collection": collection, "queue_ms": logs.milliseconds(waited)}
    if time.time() > deadline:
        context.meter.add(named(SEARCHES, "late"))
        logs.event(log, "search", logging.WARNING, outcome="late", **wait)
        return
    trace: Trace | None = None
    reason = None
    started = time.perf_counter()
    try:
        resources = context.for_reader(Reader.of_json(reader)).resources
        with until(deadline):
            response, trace = traced(resources, SearchRequest(**request))
        reply = partial(replies.send_result, result=response.model_dump_json())
        outcome = "partial" if response.partial else "answered"
    except Exception as error:
        reply = partial(replies.send, reply=replies.failed(error, "search"))
        reason, outcome = _failure(error)
    took = time.perf_counter() - started
    reply(context.broker, reply_to)
    if trace is not None and not context.recorder.put(trace):
        context.meter.add(TRACES_DROPPED)
    _count(context, outcome, took, trace)
    if reason is not None:
        context.meter.add(named(ERRORS, "search", reason))
    logs.event(
        log,
        "search",
        logging.WARNING if outcome == "failed" else logging.INFO,
        **wait,
        ms=logs.milliseconds(took),
        outcome=outcome,
        reason=reason,
        trace_id=trace and trace.trace_id,
        hits=trace and len(trace.hits),
        candidates=trace and trace.candidates,
        hotset=trace and trace.hotset,
    )


def _count(context: Context, outcome: str, seconds: float, trace: Trace | None) -> None:
    """Count a search by its outcome and time, and by the times of its stages if it has a trace."""
    its = context.meter
    its.add(named(SEARCHES, outcome))
    its.took(SEARCH_TIME, seconds)
    if trace is not None:
        for stage, milliseconds in trace.timings.items():
            its.took(named(STAGE, stage), milliseconds / 1000)
        its.caches(context.resources.caches)


def ask(context: Context, request: SearchRequest) -> SearchResponse:
    """Queue a search and return its response; with a local context, search in this process.

    The hits are those that the reader of the context may read.

    Raises the error of the search, Overloaded if too many searches are waiting or no worker reads
    the queue, SearchTimeout if no reply arrives in time, BrokerDown if the broker does not answer.
    """
    if context.local:
        response = _here(context, request)
    else:
        response = SearchResponse.model_validate_json(_elsewhere(context, request))
    return _with_boxes(context, response) if request.include_boxes else response


class Encoded(NamedTuple):
    """A response as JSON, and the id of its trace."""

    body: str | bytes
    trace_id: str


class _Traced(BaseModel):
    trace_id: str


def ask_encoded(context: Context, request: SearchRequest) -> Encoded:
    """As `ask`, but return the response as JSON: a worker's as it came, without decoding it."""
    if context.local or request.include_boxes:
        response = ask(context, request)
        return Encoded(response.model_dump_json(), response.trace_id)
    body = _elsewhere(context, request)
    return Encoded(body, _Traced.model_validate_json(body).trace_id)


def _elsewhere(context: Context, request: SearchRequest) -> bytes:
    """Queue a search, and return a worker's response as JSON."""
    # A request that is invalid in every collection is refused without a message to the queue.
    # With a deeply nested filter no worker could decode the message.
    check_request(request, context.settings.search)
    context.consumers.check(SEARCH)
    seconds = context.settings.search.timeout_seconds + MARGIN_SECONDS
    return context.consumers.call(partial(_queued, context, request), seconds)


def _here(context: Context, request: SearchRequest) -> SearchResponse:
    """Search in this process; log it as a worker does, without a queue and a stored trace."""
    started = time.perf_counter()
    reason, level = None, logging.INFO
    response: SearchResponse | None = None
    outcome = "answered"
    try:
        response = context.search(request)
        outcome = "partial" if response.partial else "answered"
        return response
    except Exception as error:
        reason, outcome = _failure(error)
        level = logging.WARNING if outcome == "failed" else logging.INFO
        raise
    finally:
        logs.event(
            log,
            "search",
            level,
            collection=request.collection,
            ms=logs.milliseconds(time.perf_counter() - started),
            outcome=outcome,
            reason=reason,
            trace_id=response and response.trace_id,
            hits=response and len(response.hits),
        )


def _failure(error: Exception) -> tuple[str, str]:
    """The reason and the outcome of a search that failed."""
    reason = error.slug if isinstance(error, CallslipError) else type(error).__name__
    return reason, "refused" if isinstance(error, PermanentError) else "failed"


def _with_boxes(context: Context, response: SearchResponse) -> SearchResponse:
    """Add the lines of hits on the pages of a PDF. Reads the extract of each document once."""
    paged = [hit for hit in response.hits if hit.pages and hit.pages.unit == "page"]
    versions = context.ledger.versions.live(list({hit.document_id for hit in paged}))
    boxes: dict[str, list[Area]] = {}
    for document_id, version in versions.items():
        hits = [hit for hit in paged if hit.document_id == document_id]
        spans = [(hit.span.start, hit.span.end) for hit in hits]
        by_hit = areas_of(context.backend, document_id, version, spans)
        for hit, areas in zip(hits, by_hit, strict=True):
            boxes[hit.chunk_id] = [Area(**area._asdict()) for area in areas]
    hits = [hit.model_copy(update={"boxes": boxes.get(hit.chunk_id)}) for hit in response.hits]
    return response.model_copy(update={"hits": hits})


def _queued(context: Context, request: SearchRequest) -> bytes:
    settings, broker = context.settings.search, context.broker
    reply_to, end = replies.new_address(), time.time() + settings.timeout_seconds
    fields = request.model_dump(exclude_unset=True)  # a worker of an older version knows these
    arguments = (fields, reply_to, end, as_json(context.reader))
    seconds = settings.timeout_seconds
    sent = sending.send(broker, query, arguments, queue=SEARCH, expires=seconds)
    if (before := sent.waiting - 1) >= settings.max_backlog and sending.take_back(broker, sent):
        raise Overloaded(f"{before} searches are waiting")
    result = replies.receive_result(broker, reply_to, end)
    if result is None:
        raise SearchTimeout(f"no answer within {seconds:g} s")
    return result
