"""The task that runs a search, and the function with which the API queues the task and waits."""

import time
from typing import Any

from celery import shared_task
from kombu.exceptions import OperationalError

from callslip.errors import BrokerDown, Overloaded, PermanentError, SearchTimeout
from callslip.retrieval.messages import SearchRequest, SearchResponse
from callslip.retrieval.run import traced
from callslip.retrieval.tracing.trace import Trace
from callslip.tasks import replies
from callslip.tasks.broker import backlog
from callslip.tasks.composition import Context, current
from callslip.tasks.metering import SEARCH_TIME, SEARCHES, STAGE, TRACES_DROPPED, named
from callslip.tasks.queues import SEARCH


@shared_task(name="search.query")
def query(request: dict[str, Any], reply_to: str, deadline: float) -> None:
    """Run a search, and push the response to `reply_to`, unless its caller stopped waiting."""
    context = current()
    if time.time() > deadline:
        context.meter.add(named(SEARCHES, "late"))
        return
    trace: Trace | None = None
    started = time.perf_counter()
    try:
        response, trace = traced(context.resources, SearchRequest(**request))
        reply: replies.Reply = {"ok": response.model_dump(mode="json")}
        outcome = "partial" if response.partial else "answered"
    except Exception as error:
        reply = replies.failed(error, "search")
        outcome = "refused" if isinstance(error, PermanentError) else "failed"
    took = time.perf_counter() - started
    replies.send(context.broker, reply_to, reply)
    if trace is not None and not context.recorder.put(trace):
        context.meter.add(TRACES_DROPPED)
    _count(context, outcome, took, trace)


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

    Raises the error of the search, Overloaded if too many searches are waiting, SearchTimeout if no
    reply arrives in time, BrokerDown if the broker does not answer.
    """
    if context.local:
        return context.search(request)
    settings = context.settings.search
    if (waiting := backlog(context.broker, SEARCH)) >= settings.max_backlog:
        raise Overloaded(f"{waiting} searches are waiting")
    reply_to, until = replies.new_address(), time.time() + settings.timeout_seconds
    try:
        query.apply_async(
            (request.model_dump(), reply_to, until), queue=SEARCH, expires=settings.timeout_seconds
        )
    except OperationalError as error:
        raise BrokerDown(f"the broker does not answer: {type(error).__name__}") from error
    for reply in replies.receive(context.broker, reply_to, until):
        return SearchResponse(**reply["ok"])
    raise SearchTimeout(f"no answer within {settings.timeout_seconds:g} s")
