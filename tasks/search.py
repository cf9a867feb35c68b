"""A search as queued work, and how its caller waits for the reply."""

import time
from typing import Any

from celery import shared_task
from kombu.exceptions import OperationalError

from callslip.errors import BrokerDown, Overloaded, PermanentError, SearchTimeout
from config import get_settings
from retrieval.messages import SearchRequest, SearchResponse
from retrieval.trace import Trace
from tasks import replies
from tasks.metering import SEARCH_TIME, SEARCHES, STAGE, TRACES_DROPPED, meter, named
from tasks.process import backlog, engine
from tasks.queues import SEARCH
from tasks.recording import recorder


@shared_task(name="search.query")
def query(request: dict[str, Any], reply_to: str, deadline: float) -> None:
    """Answer a search into the list `reply_to`, unless its caller has stopped waiting."""
    if time.time() > deadline:
        meter().add(named(SEARCHES, "late"))
        return
    trace: Trace | None = None
    started = time.perf_counter()
    try:
        response, trace = engine().traced(SearchRequest(**request))
        reply: replies.Reply = {"ok": response.model_dump(mode="json")}
        outcome = "partial" if response.partial else "answered"
    except Exception as error:
        reply = replies.failed(error, "search")
        outcome = "refused" if isinstance(error, PermanentError) else "failed"
    took = time.perf_counter() - started
    replies.send(reply_to, reply)
    if trace is not None and not recorder().put(trace):
        meter().add(TRACES_DROPPED)
    _count(outcome, took, trace)


def _count(outcome: str, seconds: float, trace: Trace | None) -> None:
    """Count a search that ended so, after so long, with its stages where it came to an answer."""
    its = meter()
    its.add(named(SEARCHES, outcome))
    its.took(SEARCH_TIME, seconds)
    if trace is not None:
        for stage, milliseconds in trace.timings.items():
            its.took(named(STAGE, stage), milliseconds / 1000)
        its.caches(engine().caches)


def ask(request: SearchRequest) -> SearchResponse:
    """Queue a search and wait for its reply.

    Raises what the search raised, Overloaded when too many wait already, SearchTimeout when no
    reply came in time, BrokerDown when the broker does not answer.
    """
    settings = get_settings().search
    if (waiting := backlog(SEARCH)) >= settings.max_backlog:
        raise Overloaded(f"{waiting} searches are waiting")
    reply_to, until = replies.new_address(), time.time() + settings.timeout_seconds
    try:
        query.apply_async(
            (request.model_dump(), reply_to, until), queue=SEARCH, expires=settings.timeout_seconds
        )
    except OperationalError as error:
        raise BrokerDown(f"the broker does not answer: {type(error).__name__}") from error
    for reply in replies.receive(reply_to, until):
        return SearchResponse(**reply["ok"])
    raise SearchTimeout(f"no answer within {settings.timeout_seconds:g} s")
